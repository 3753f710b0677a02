// SPDX-License-Identifier: Apache-2.0
// Runs for as many seconds as its argument says, in two threads. Every call in it stands in java.truth, with its lines.
import java.util.function.IntUnaryOperator;
import java.util.function.Supplier;

public class Java {
	static volatile int sink;

	static int one(int x) {
		for (int i = 0; i < 30000; i++)
			x = (x * 31 + i) % 1000003;
		return x;
	}

	static int two(int x) {
		for (int i = 0; i < 60000; i++)
			x = (x * 31 + i) % 1000003;
		return x;
	}

	static int three(int x) {
		for (int i = 0; i < 90000; i++)
			x = (x * 31 + i) % 1000003;
		return x;
	}

	static int recurse(int depth, int x) {
		if (depth > 0)
			return recurse(depth - 1, x + 1) + 1;
		return three(x);
	}

	interface Shape {
		int area(int x);

		default int twice(int x) {
			return area(x);
		}
	}

	static class Square implements Shape {
		public int area(int x) {
			return one(x);
		}
	}

	static class Circle implements Shape {
		private final int radius;

		Circle(int x) {
			radius = two(x);
		}

		public int area(int x) {
			return two(x + radius);
		}
	}

	static class Round extends Circle {
		Round(int x) {
			super(x);
		}

		@Override
		public int area(int x) {
			return super.area(x);
		}
	}

	static int apply(IntUnaryOperator f, int x) {
		return f.applyAsInt(x);
	}

	static int lambdas(int x) {
		int add = x & 7;
		return apply(y ->
			one(y + add), x) + apply(Java::one, x);
	}

	static int anonymous(int x) {
		Supplier<Integer> s = new Supplier<Integer>() {
			@Override
			public Integer get() {
				return two(x);
			}
		};
		return s.get();
	}

	static int fail(int x) {
		throw new IllegalStateException("x" + one(x));
	}

	static int catches(int x) {
		try {
			return fail(x);
		} catch (IllegalStateException e) {
			return two(x);
		} finally {
			sink = one(x);
		}
	}

	static synchronized int locked(int x) {
		return one(x);
	}

	static int block(int x) {
		synchronized (Java.class) {
			return two(x);
		}
	}

	static <T extends Comparable<T>> int generic(T[] array, int x) {
		return array[0].compareTo(array[1]) + one(x);
	}

	static int many(long a, double b, int c, Object d, byte[][] e, boolean f, float g, short h, char i, String j) {
		return two(c + h + j.length());
	}

	static int loop(int x) {
		switch (x & 1) {
		case 0:
			return one(x);
		default:
			return one(x + 1);
		}
	}

	static int work(int x) {
		Shape[] shapes = {new Square(), new Circle(x), new Round(x)};
		x += recurse(20, x);
		for (Shape s : shapes)
			x += s.twice(x);
		x += lambdas(x);
		x += anonymous(x);
		x += catches(x);
		x += locked(x);
		x += block(x);
		x += generic(new String[] {"a", "b"}, x);
		x += many(1, 2.0, x, shapes, new byte[1][1], true, 3.0f, (short) 4, 'c', "d");
		x += loop(x);
		return x & 0xffff;
	}

	static void rounds(long end) {
		int x = 1;
		while (System.nanoTime() < end)
			x = work(x);
		sink = x;
	}

	public static void main(String[] args) throws InterruptedException {
		long end = System.nanoTime() + Long.parseLong(args[0]) * 1000000000L;
		Thread t = new Thread(() -> rounds(end));
		t.start();
		rounds(end);
		t.join();
	}
}
