// SPDX-License-Identifier: Apache-2.0
// Loads classes again and again, each by a loader of its own, runs their code until it is compiled, and drops them: code and
// methods of one lie where those of another lay before. The thread is named after the class that it runs.
// Arguments: seconds, a directory with classes K0 to K15.
import java.io.File;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.function.IntUnaryOperator;

public class Churn {
	static final int CLASSES = 16;
	static volatile int sink;

	static void round(URL[] where, int n) throws Exception {
		try (URLClassLoader loader = new URLClassLoader(where, null)) {
			IntUnaryOperator f = (IntUnaryOperator) loader.loadClass("K" + n).getConstructor().newInstance();
			long end = System.nanoTime() + 40000000L;

			Thread.currentThread().setName("k" + n);
			for (int x = n; System.nanoTime() < end; )
				sink = x = f.applyAsInt(x);
			Thread.currentThread().setName("between");
		}
	}

	public static void main(String[] args) throws Exception {
		long end = System.nanoTime() + Long.parseLong(args[0]) * 1000000000L;
		URL[] where = {new File(args[1]).toURI().toURL()};

		for (int i = 0; System.nanoTime() < end; i++) {
			round(where, (i * 7) % CLASSES);
			if (i % 8 == 0)
				System.gc();
		}
	}
}
