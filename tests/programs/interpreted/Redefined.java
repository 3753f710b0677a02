// SPDX-License-Identifier: Apache-2.0
// Redefines classes again and again, as debuggers and mocks do: methods of one come to lie where those of another lay, while
// no class is unloaded, in rounds as Churn's. It is its own agent. A thread is named after the class whose code it runs.
// Arguments: seconds, a directory with classes K0 to K15, milliseconds that a class runs, classes of a thread from one
// collection to the next.
import java.io.File;
import java.lang.instrument.ClassDefinition;
import java.lang.instrument.Instrumentation;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.function.IntUnaryOperator;

public class Redefined {
	static final int CLASSES = Churn.CLASSES;
	static final IntUnaryOperator[] OBJECTS = new IntUnaryOperator[CLASSES];
	static final byte[][] BYTES = new byte[CLASSES][];
	static Instrumentation instrumentation;

	public static void premain(String text, Instrumentation given) {
		instrumentation = given;
	}

	static void load(String where) throws Exception {
		URLClassLoader loader = new URLClassLoader(new URL[]{new File(where).toURI().toURL()}, null);

		for (int n = 0; n < CLASSES; n++) {
			OBJECTS[n] = (IntUnaryOperator) loader.loadClass("K" + n).getConstructor().newInstance();
			BYTES[n] = Files.readAllBytes(Paths.get(where, "K" + n + ".class"));
		}
	}

	static void round(int n, long life) throws Exception {
		long end = System.nanoTime() + life * 1000000L;

		Thread.currentThread().setName("k" + n);
		for (int x = n; System.nanoTime() < end; )
			Churn.sink = x = OBJECTS[n].applyAsInt(x);
		Thread.currentThread().setName("between");
		instrumentation.redefineClasses(new ClassDefinition(OBJECTS[n].getClass(), BYTES[n]));
	}

	public static void main(String[] args) throws Exception {
		long life = Long.parseLong(args[2]);

		load(args[1]);
		Churn.run(args, (first, i) -> round(first + i * 7 % (CLASSES / Churn.THREADS), life));
	}
}
