// SPDX-License-Identifier: Apache-2.0
// Code that compilers and hand-written stubs give more words of the stack than its frame: remainders of doubles, texts that are
// compared and sought, digests, arrays whose elements are checked as they are copied, functions of Math, native methods. Each thread is
// named after its function a second after it began, and calls no other; runs for as many seconds as its argument says.
import java.security.MessageDigest;
import java.util.TreeMap;

public class Pushes {
	static volatile double sink;

	static void remainder() {
		double x = 0;

		for (int i = 0; i < 100000; i++)
			x += (x + i) % 3.7;
		sink = x;
	}

	static void compare() {
		TreeMap<String, Integer> map = new TreeMap<>();

		for (int i = 0; i < 2000; i++)
			map.merge("a text of some length " + i * 7919 % 101, i, Integer::sum);
		sink = map.size();
	}

	static void digest() throws Exception {
		MessageDigest digest = MessageDigest.getInstance("SHA-512");

		digest.update(new byte[256 << 10]);
		sink = digest.digest()[0];
	}

	static void copy() {
		Object[] from = new Object[20000];
		Integer[] to = new Integer[20000];

		for (int i = 0; i < from.length; i++)
			from[i] = i & 127;
		for (int i = 0; i < 200; i++)
			System.arraycopy(from, 0, to, 0, from.length - i);
		sink = to[3];
	}

	static void math() {
		double x = 0;

		for (int i = 0; i < 10000; i++)
			x += Math.sin(i) + Math.pow(i, 0.3) + Math.exp(-i / 1e5) + Math.log(i + 1);
		sink = x;
	}

	static void natives() {
		for (int i = 0; i < 10000; i++)
			sink = Runtime.getRuntime().freeMemory();
	}

	/* Text that may lie at the end of a page is copied to the stack first: one way has words there, the other none. */
	static void seek() {
		String[] texts = new String[500];
		int found = 0;

		for (int i = 0; i < texts.length; i++)
			texts[i] = "text " + i * 7919 % 101;
		for (int i = 0; i < 200; i++)
			for (String text : texts)
				found += text.indexOf(i % 2 == 0 ? "t 77" : texts[i]) + text.indexOf("77") + text.length();
		sink = found;
	}

	interface Work { void run() throws Exception; }

	static void rounds(String name, Work work, long begin, long end) {
		try {
			while (System.nanoTime() < begin)
				work.run();
			Thread.currentThread().setName(name);
			while (System.nanoTime() < end)
				work.run();
		} catch (Exception e) {
			throw new RuntimeException(e);
		}
	}

	static Thread start(String name, Work work, long begin, long end) {
		Thread t = new Thread(() -> rounds(name, work, begin, end));

		t.start();
		return t;
	}

	public static void main(String[] args) throws InterruptedException {
		long now = System.nanoTime(), begin = now + 1000000000L, end = now + Long.parseLong(args[0]) * 1000000000L;
		Thread[] threads = {
			start("remainder", Pushes::remainder, begin, end), start("compare", Pushes::compare, begin, end),
			start("digest", Pushes::digest, begin, end), start("copy", Pushes::copy, begin, end),
			start("math", Pushes::math, begin, end), start("natives", Pushes::natives, begin, end),
			start("seek", Pushes::seek, begin, end),
		};

		for (Thread t : threads)
			t.join();
	}
}
