// SPDX-License-Identifier: Apache-2.0
// Virtual threads (of 21 and later; found by reflection, as it is compiled for 8). One after the other, two at a time, each
// for 50 ms: some only compute, in calls of stays; others give up their carrier at the bottom of calls of down, and what
// they return to comes back from the heap, a few frames at a time; or they go around, deeper than what comes back at once,
// and wait again on their way. As collections move what is in the heap, it is in several pieces then. Runs for as many
// seconds as its argument says.
import java.util.concurrent.locks.LockSupport;

public class Virtual {
	static final int DEPTH = 12, AROUND = 80, ROUND = 10;
	static volatile int sink;

	static int still(int x) {
		for (int i = 0; i < 60000; i++)
			x = (x * 31 + i) % 1000003;
		return x;
	}

	static int after(int x) {
		for (int i = 0; i < 20000; i++)
			x = (x * 31 + i) % 1000003;
		return x;
	}

	static int down(int depth, int x) {
		if (depth > 0)
			return after(down(depth - 1, x + 1));
		LockSupport.parkNanos(100000);
		return after(x);
	}

	/* Since 24 who waits for a monitor gives up its carrier, too. */
	static synchronized int alone(int x) {
		return after(x);
	}

	static void pause(int depth) {
		if (depth % ROUND == 0)
			LockSupport.parkNanos(100000);
		if (depth % ROUND == ROUND / 2)
			sink = alone(depth);
	}

	static int north(int depth, int x) {
		if (depth > 0)
			x = east(depth - 1, x + 1);
		pause(depth);
		return after(x);
	}

	static int east(int depth, int x) {
		x = south(depth - 1, x + 1);
		pause(depth);
		return after(x);
	}

	static int south(int depth, int x) {
		x = west(depth - 1, x + 1);
		pause(depth);
		return after(x);
	}

	static int west(int depth, int x) {
		x = north(depth - 1, x + 1);
		pause(depth);
		return after(x);
	}

	static int stays(int depth, int x) {
		if (depth > 0)
			return stays(depth - 1, x + 1) + 1;
		return still(x);
	}

	static void computes() {
		long end = System.nanoTime() + 50000000L;
		int x = 1;

		while (System.nanoTime() < end)
			x = stays(DEPTH, x);
		sink = x;
	}

	static void waits() {
		long end = System.nanoTime() + 50000000L;
		int x = 1;

		while (System.nanoTime() < end)
			x = down(DEPTH, x);
		sink = x;
	}

	static void turns() {
		long end = System.nanoTime() + 50000000L;
		int x = 1;

		while (System.nanoTime() < end)
			x = north(AROUND, x);
		sink = x;
	}

	static void collects() {
		try {
			for (;;) {
				Thread.sleep(40);
				System.gc();
			}
		} catch (InterruptedException e) {
		}
	}

	static void rounds(long end) {
		Runnable[] all = {Virtual::computes, Virtual::waits, Virtual::turns};

		try {
			for (int i = 0; System.nanoTime() < end; i++)
				((Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, all[i % 3])).join();
		} catch (Exception e) {
			e.printStackTrace();
			System.exit(1);
		}
	}

	public static void main(String[] args) throws InterruptedException {
		long end = System.nanoTime() + Long.parseLong(args[0]) * 1000000000L;
		Thread t = new Thread(() -> rounds(end));

		Thread collector = new Thread(Virtual::collects);

		collector.setDaemon(true);
		collector.start();
		t.start();
		rounds(end);
		t.join();
	}
}
