// SPDX-License-Identifier: Apache-2.0
// Functions that differ by name alone, called by one that compilers inline them into; each thread, named after its function,
// calls no other. Runs for as many seconds as its first argument says; loops are as long as the second one does.
public class Leaf {
	static volatile int sink;
	static int limit;

	static int leaf0(int x) {
		for (int i = 0; i < limit; i++)
			x = (x * 31 + i) % 1000003;
		return x;
	}

	static int leaf1(int x) {
		for (int i = 0; i < limit; i++)
			x = (x * 31 + i) % 1000003;
		return x;
	}

	static int leaf2(int x) {
		for (int i = 0; i < limit; i++)
			x = (x * 31 + i) % 1000003;
		return x;
	}

	static int leaf3(int x) {
		for (int i = 0; i < limit; i++)
			x = (x * 31 + i) % 1000003;
		return x;
	}

	static int leaf4(int x) {
		for (int i = 0; i < limit; i++)
			x = (x * 31 + i) % 1000003;
		return x;
	}

	static int leaf5(int x) {
		for (int i = 0; i < limit; i++)
			x = (x * 31 + i) % 1000003;
		return x;
	}

	static int leaf6(int x) {
		for (int i = 0; i < limit; i++)
			x = (x * 31 + i) % 1000003;
		return x;
	}

	static int leaf7(int x) {
		for (int i = 0; i < limit; i++)
			x = (x * 31 + i) % 1000003;
		return x;
	}

	static int call(int which, int x) {
		switch (which) {
		case 0:
			return leaf0(x);
		case 1:
			return leaf1(x);
		case 2:
			return leaf2(x);
		case 3:
			return leaf3(x);
		case 4:
			return leaf4(x);
		case 5:
			return leaf5(x);
		case 6:
			return leaf6(x);
		case 7:
			return leaf7(x);
		default:
			return x;
		}
	}

	static void rounds(int which, long end) {
		int x = which;

		Thread.currentThread().setName("leaf" + which);
		while (System.nanoTime() < end)
			for (int i = 0; i < 1000; i++)
				x = call(which, x);
		sink = x;
	}

	public static void main(String[] args) throws InterruptedException {
		long end = System.nanoTime() + Long.parseLong(args[0]) * 1000000000L;
		Thread[] threads = new Thread[8];

		limit = Integer.parseInt(args[1]);

		for (int i = 0; i < threads.length; i++) {
			int which = i;

			threads[i] = new Thread(() -> rounds(which, end));
			threads[i].start();
		}
		for (Thread t : threads)
			t.join();
	}
}
