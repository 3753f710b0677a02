// SPDX-License-Identifier: Apache-2.0
// A heap of much compiled code: defines a class under as many names as its first argument says, by its file, whose name
// ends with the digits of a number, and runs all of their methods in turn, for as many seconds as its second argument says.
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.function.IntUnaryOperator;

public class Large extends ClassLoader {
	static volatile int sink;

	static byte[] template() throws Exception {
		ByteArrayOutputStream to = new ByteArrayOutputStream();
		byte[] block = new byte[8192];

		try (InputStream in = Large.class.getResourceAsStream("Part00000.class")) {
			for (int n; (n = in.read(block)) > 0; )
				to.write(block, 0, n);
		}
		return to.toByteArray();
	}

	IntUnaryOperator part(byte[] template, int n) throws Exception {
		String text = new String(template, StandardCharsets.ISO_8859_1);
		String name = String.format("Part%05d", n);
		byte[] bytes = text.replace("Part00000", name).getBytes(StandardCharsets.ISO_8859_1);

		return (IntUnaryOperator) defineClass(name, bytes, 0, bytes.length).getConstructor().newInstance();
	}

	public static void main(String[] args) throws Exception {
		IntUnaryOperator[] parts = new IntUnaryOperator[Integer.parseInt(args[0])];
		Large loader = new Large();
		byte[] template = template();
		long end = System.nanoTime() + Long.parseLong(args[1]) * 1000000000L;
		int x = 1;

		for (int i = 0; i < parts.length; i++)
			parts[i] = loader.part(template, i);
		while (System.nanoTime() < end)
			for (IntUnaryOperator part : parts)
				x = part.applyAsInt(x);
		sink = x;
	}
}
