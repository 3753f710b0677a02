// SPDX-License-Identifier: Apache-2.0
// Calls as a virtual machine makes and ends them: exceptions through compiled frames, frames that are given up while they wait,
// locks, native code and back, handles of methods, tables of methods, stubs for what compilers write out by hand. Each thread is
// named after its function a second after it began, and calls no other; what that calls, hotspot_calls.py lists. Runs for as many
// seconds as its argument says.
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.invoke.MutableCallSite;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.AccessController;
import java.security.MessageDigest;
import java.security.PrivilegedAction;
import java.util.Arrays;
import java.util.Base64;
import java.util.zip.CRC32;
import java.util.zip.Deflater;
import javax.crypto.Cipher;
import javax.crypto.spec.SecretKeySpec;

public class Calls {
	static volatile long sink;
	static volatile Object kept;
	static long end;

	static int spin(int x, int rounds) {
		for (int i = 0; i < rounds; i++)
			x = (x * 31 + i) % 1000003;
		return x;
	}

	/* --- exceptions --- */

	static final RuntimeException THROWN = new RuntimeException("known");

	static int thrown4(int x) {
		if ((x & 1) == 0)
			throw THROWN;
		return x + 1;
	}

	static int thrown3(int x) {
		return thrown4(x) + 1;
	}

	static int thrown2(int x) {
		try {
			return thrown3(x) * 3;
		} finally {
			sink = x;
		}
	}

	static synchronized int thrown1(int x) {
		return thrown2(x) + 7;
	}

	static void thrown() {
		int x = 0;

		for (int i = 0; i < 2000; i++)
			try {
				x += thrown1(i);
			} catch (RuntimeException e) {
				x++;
			}
		sink = x;
	}

	static void traces() {
		for (int i = 0; i < 300; i++)
			kept = new Throwable();
	}

	/* --- frames that are given up --- */

	static final MutableCallSite SITE = new MutableCallSite(MethodType.methodType(int.class, int.class));
	static final MethodHandle CALLED = SITE.dynamicInvoker(), ONE, TWO;
	static int givenUps;

	static int target1(int x) {
		return x + 1;
	}

	static int target2(int x) {
		return x + 2;
	}

	static {
		try {
			MethodType type = MethodType.methodType(int.class, int.class);

			ONE = MethodHandles.lookup().findStatic(Calls.class, "target1", type);
			TWO = MethodHandles.lookup().findStatic(Calls.class, "target2", type);
		} catch (ReflectiveOperationException e) {
			throw new Error(e);
		}
		SITE.setTarget(ONE);
	}

	/* What calls it depends on the target that it changes: their frames are given up as they wait for it. */
	static int givenUpFar(int x) {
		if (x == 0) {
			SITE.setTarget(++givenUps % 2 == 0 ? ONE : TWO);
			MutableCallSite.syncAll(new MutableCallSite[]{SITE});
			return spin(x, 3000000);
		}
		return spin(x, 10);
	}

	static int givenUpNear(int x) throws Throwable {
		int y = (int)CALLED.invokeExact(x) + 1;

		return y + givenUpFar(x);
	}

	static int givenUpMiddle(int x) throws Throwable {
		return 2 * givenUpNear(x) + 1;
	}

	static int givenUpOuter(int x) throws Throwable {
		return 3 * givenUpMiddle(x) + (int)CALLED.invokeExact(x);
	}

	static void givenUp() throws Throwable {
		int x = 0;

		for (int i = 1; i < 60000; i++)
			x += givenUpOuter(i);
		sink = x + givenUpOuter(0);
	}

	/* --- locks --- */

	static final Object LOCK = new Object();

	static synchronized int lockedMethod(int x) {
		return spin(x, 300);
	}

	static int lockedBlock(int x) {
		synchronized (LOCK) {
			return spin(x, 300);
		}
	}

	static void locked() {
		int x = 0;

		for (int i = 0; i < 300; i++)
			x += lockedMethod(i) + lockedBlock(i);
		sink = x;
	}

	/* --- native code, and back --- */

	static final byte[] BYTES = new byte[8192], OTHERS = new byte[8192];

	static Integer nativeBack(int x) {
		return spin(x, 200);
	}

	static void natives() {
		Deflater d = new Deflater();

		d.setInput(BYTES);
		d.finish();
		sink = d.deflate(new byte[256]);
		d.end();
		for (int i = 0; i < 500; i++) {
			final int x = i;

			kept = AccessController.doPrivileged((PrivilegedAction<Integer>)() -> nativeBack(x));
			sink = Runtime.getRuntime().freeMemory() + System.identityHashCode(new Object());
		}
	}

	/* --- handles --- */

	static int handleCalled(int x, long y, String s) {
		return spin(x, 50) + (int)y;
	}

	static MethodHandle handle;

	static {
		try {
			MethodType type = MethodType.methodType(int.class, int.class, long.class, String.class);

			handle = MethodHandles.lookup().findStatic(Calls.class, "handleCalled", type);
			handle = MethodHandles.insertArguments(handle, 2, "text");
			handle = MethodHandles.permuteArguments(handle, MethodType.methodType(int.class, long.class, int.class), 1, 0);
		} catch (ReflectiveOperationException e) {
			throw new Error(e);
		}
	}

	static void handle() throws Throwable {
		int x = 0;

		for (int i = 0; i < 500; i++)
			x += (int)handle.invokeExact((long)i, i) + (int)handle.invoke((long)i, i);
		sink = x;
	}

	/* --- tables --- */

	interface Shape { int table(int x); }

	static class Shape0 implements Shape { public int table(int x) { return x + 1; } }
	static class Shape1 extends Shape0 { @Override public int table(int x) { return x + 2; } }
	static class Shape2 extends Shape0 { @Override public int table(int x) { return x + 3; } }
	static class Shape3 extends Shape0 { @Override public int table(int x) { return x + 4; } }
	static class Shape4 implements Comparable<Shape4>, Shape {
		public int table(int x) { return x + 5; }
		public int compareTo(Shape4 o) { return 0; }
	}

	static final Shape[] SHAPES = {new Shape0(), new Shape1(), new Shape2(), new Shape3(), new Shape4()};

	static void tables() {
		int x = 0;

		for (int i = 0; i < 20000; i++) {
			x += SHAPES[i % 5].table(i);
			x += ((Shape0)SHAPES[i % 4]).table(i);
		}
		sink = x;
	}

	/* --- checks of types: more than there is room for --- */

	interface I0 { } interface I1 { } interface I2 { } interface I3 { } interface I4 { } interface I5 { } interface I6 { }
	interface I7 { } interface I8 { } interface I9 { } interface Ia { } interface Ib { } interface Ic { } interface Id { }
	static class All implements I0, I1, I2, I3, I4, I5, I6, I7, I8, I9, Ia, Ib, Ic, Id { }
	static class Half implements I1, I3, I5, I7, I9, Ib, Id { }

	static int checksMany(Object o, int x) {
		x += o instanceof I0 ? 1 : 2;
		x += o instanceof I1 ? 1 : 2;
		x += o instanceof I2 ? 1 : 2;
		x += o instanceof I3 ? 1 : 2;
		x += o instanceof I4 ? 1 : 2;
		x += o instanceof I5 ? 1 : 2;
		x += o instanceof I6 ? 1 : 2;
		x += o instanceof I7 ? 1 : 2;
		x += o instanceof I8 ? 1 : 2;
		x += o instanceof I9 ? 1 : 2;
		x += o instanceof Ia ? 1 : 2;
		x += o instanceof Ib ? 1 : 2;
		x += o instanceof Ic ? 1 : 2;
		x += o instanceof Id ? 1 : 2;
		return x + ((I1)o).hashCode() + ((Id)o).hashCode();
	}

	static final Object[] CHECKED = {new All(), new Half()};

	static void checks() {
		int x = 0;

		for (int i = 0; i < 3000; i++)
			x += checksMany(CHECKED[i & 1], i);
		sink = x;
	}

	/* --- stubs --- */

	static Cipher aes(String mode) throws Exception {
		Cipher c = Cipher.getInstance("AES/" + mode);

		c.init(Cipher.ENCRYPT_MODE, new SecretKeySpec(new byte[16], "AES"));
		return c;
	}

	static void ciphers() throws Exception {
		for (String mode : new String[]{"CBC/PKCS5Padding", "CTR/NoPadding", "ECB/NoPadding", "GCM/NoPadding"})
			sink = aes(mode).doFinal(BYTES)[1];
	}

	static void digests() throws Exception {
		CRC32 crc = new CRC32();
		java.util.zip.Adler32 adler = new java.util.zip.Adler32();

		for (String name : new String[]{"MD5", "SHA-1", "SHA-256", "SHA-512"})
			sink = MessageDigest.getInstance(name).digest(BYTES)[0];
		for (int i = 0; i < 50; i++) {
			crc.update(BYTES);
			adler.update(BYTES);
		}
		sink = crc.getValue() + adler.getValue();
	}

	static void numbers() {
		BigInteger a = new BigInteger(BYTES.length / 8, new java.util.Random(1)), b = a.add(BigInteger.TEN).setBit(0);

		for (int i = 0; i < 20; i++)
			sink = a.multiply(b).bitLength() + a.multiply(a).bitLength() + b.shiftLeft(i).bitLength();
		sink = a.modPow(BigInteger.valueOf(65537), b).bitLength();
	}

	static void texts() {
		String s = new String(BYTES, StandardCharsets.ISO_8859_1) + "tail", wide = s + "\u20ac";
		byte[] coded = Base64.getEncoder().encode(BYTES);

		for (int i = 0; i < 20; i++) {
			sink = s.indexOf("tail") + wide.indexOf("\u20ac") + s.compareTo(wide) + s.indexOf('q');
			sink = s.getBytes(StandardCharsets.ISO_8859_1).length + wide.getBytes(StandardCharsets.UTF_8).length;
			sink = Base64.getDecoder().decode(coded).length + (Arrays.equals(BYTES, OTHERS) ? 1 : 0) + s.hashCode();
			kept = new StringBuilder().append(s).append(i).append(wide).toString();
		}
	}

	static void arrays() {
		int[] ints = new int[4000], more = new int[4000];
		Object[] objects = new Object[4000];
		Integer[] integers = new Integer[4000];

		for (int i = 0; i < 4000; i++) {
			ints[i] = i * 7919 % 4001;
			objects[i] = i & 127;
		}
		for (int i = 0; i < 20; i++) {
			System.arraycopy(ints, i, more, 0, 4000 - i);
			System.arraycopy(objects, 0, integers, i, 4000 - i);
			System.arraycopy(objects, 0, objects, i, 4000 - i);
			kept = objects.clone();
			Arrays.fill(more, 100, 3000, i);
			sink = Arrays.hashCode(more);
		}
		Arrays.sort(ints);
		kept = ints;
	}

	static void real() {
		double x = 0;

		for (int i = 1; i < 3000; i++)
			x += Math.tan(i) + Math.atan2(i, 3) + Math.cbrt(i) + Math.log10(i) + Math.tanh(i / 3e3) + Math.cos(i) + i % 3.1 +
			     i * 1e9f % 7.1f;
		sink = (long)x;
	}

	/* --- what a collector sees --- */

	static final Object[] OLD = new Object[1 << 16];

	static void stores() {
		for (int i = 0; i < 20000; i++) {
			Object[] one = new Object[]{OLD[i], null};

			OLD[i * 7919 & 0xffff] = one;
			one[0] = i % 7 == 0 ? null : OLD[i & 0xfff];
			if (i % 3 == 0)
				OLD[i] = null;
		}
	}

	/* --- a loop that is entered once --- */

	static int osrFar(int x) {
		return spin(x, 30);
	}

	static void osr() {
		int x = 0;

		while (System.nanoTime() < end)
			x += osrFar(x);
		sink = x;
	}

	interface Work { void run() throws Throwable; }

	static void rounds(String name, Work work, long begin, long end) {
		try {
			while (System.nanoTime() < begin)
				work.run();
			Thread.currentThread().setName(name);
			while (System.nanoTime() < end)
				work.run();
		} catch (Throwable e) {
			throw new RuntimeException(e);
		}
	}

	static void start(String name, Work work, long begin) {
		new Thread(() -> rounds(name, work, begin, end)).start();
	}

	/* Meanwhile threads are stopped again and again, wherever they are. */
	static void stops() throws InterruptedException {
		while (System.nanoTime() < end) {
			Thread.getAllStackTraces();
			Thread.sleep(5);
		}
	}

	public static void main(String[] args) throws InterruptedException {
		long begin = System.nanoTime() + 1000000000L;

		new java.util.Random(2).nextBytes(BYTES);
		System.arraycopy(BYTES, 0, OTHERS, 0, BYTES.length);
		end = begin - 1000000000L + Long.parseLong(args[0]) * 1000000000L;
		start("thrown", Calls::thrown, begin);
		start("traces", Calls::traces, begin);
		start("givenUp", Calls::givenUp, begin);
		start("locked", Calls::locked, begin);
		start("locked", Calls::locked, begin);
		start("natives", Calls::natives, begin);
		start("handle", Calls::handle, begin);
		start("tables", Calls::tables, begin);
		start("checks", Calls::checks, begin);
		start("ciphers", Calls::ciphers, begin);
		start("digests", Calls::digests, begin);
		start("numbers", Calls::numbers, begin);
		start("texts", Calls::texts, begin);
		start("arrays", Calls::arrays, begin);
		start("real", Calls::real, begin);
		start("stores", Calls::stores, begin);
		start("osr", Calls::osr, 0);
		stops();
	}
}
