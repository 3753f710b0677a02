// SPDX-License-Identifier: Apache-2.0
// Virtual threads (21 and later, found by reflection so that any compiler compiles it), which compute, and give up their
// carrier at the bottom of a recursion: what they return to comes back from the heap, a few frames at a time.
// Arguments: seconds.
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

public class Virtual {
	static final int THREADS = 8, DEPTH = 12;
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

	static int stays(int depth, int x) {
		if (depth > 0)
			return stays(depth - 1, x + 1) + 1;
		return still(x);
	}

	static void rounds(long end) {
		int x = 1;
		while (System.nanoTime() < end)
			x = down(DEPTH, x) + stays(DEPTH, x);
		sink = x;
	}

	public static void main(String[] args) throws Exception {
		long end = System.nanoTime() + Long.parseLong(args[0]) * 1000000000L;
		List<Thread> threads = new ArrayList<Thread>();

		for (int i = 0; i < THREADS; i++)
			threads.add((Thread) Thread.class.getMethod("startVirtualThread", Runnable.class)
				.invoke(null, (Runnable) () -> rounds(end)));
		for (Thread t : threads)
			t.join();
	}
}
