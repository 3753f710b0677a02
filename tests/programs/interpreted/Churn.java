// SPDX-License-Identifier: Apache-2.0
// Loads classes again and again, each by a loader of its own, runs their code until it is compiled, and drops them: code and
// methods of one come to lie where those of another lay. A thread is named after the class whose code it runs.
// Arguments: seconds, a directory with classes K0 to K15, milliseconds that a class lives, classes of a thread from one
// collection to the next; with one more, classes are kept: only code that was replaced is given up.
import java.io.File;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.IntUnaryOperator;

public class Churn {
	static final int CLASSES = 16, THREADS = 2;
	static final List<Object> KEPT = new CopyOnWriteArrayList<>();
	static volatile int sink;

	static void round(URL[] where, int n, long life, boolean keeps) throws Exception {
		try (URLClassLoader loader = new URLClassLoader(where, null)) {
			IntUnaryOperator f = (IntUnaryOperator) loader.loadClass("K" + n).getConstructor().newInstance();
			long end = System.nanoTime() + life * 1000000L;

			if (keeps)
				KEPT.add(f);
			Thread.currentThread().setName("k" + n);
			for (int x = n; System.nanoTime() < end; )
				sink = x = f.applyAsInt(x);
			Thread.currentThread().setName("between");
		}
	}

	interface Round { void run(int first, int i) throws Exception; }

	static void rounds(String[] args, int first, Round round) {
		long end = System.nanoTime() + Long.parseLong(args[0]) * 1000000000L;
		int every = Integer.parseInt(args[3]);

		try {
			for (int i = 0; System.nanoTime() < end; i++) {
				round.run(first, i);
				if (i % every == 0)
					System.gc();
			}
		} catch (Exception e) {
			e.printStackTrace();
			System.exit(1);
		}
	}

	/* Each thread has its rounds, from a class of its own on. */
	static void run(String[] args, Round round) throws InterruptedException {
		Thread[] threads = new Thread[THREADS];

		for (int i = 0; i < THREADS; i++) {
			int first = i * CLASSES / THREADS;
			threads[i] = new Thread(() -> rounds(args, first, round));
			threads[i].start();
		}
		for (Thread t : threads)
			t.join();
	}

	public static void main(String[] args) throws Exception {
		URL[] where = {new File(args[1]).toURI().toURL()};
		long life = Long.parseLong(args[2]);

		run(args, (first, i) -> round(where, (first + i * 7) % CLASSES, life, args.length > 4));
	}
}
