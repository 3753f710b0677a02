// SPDX-License-Identifier: Apache-2.0
// Methods that are made, run for a while and are collected, all the time, so that others lie where they lay: dynamic ones, and
// those of assemblies that are loaded and unloaded. Each has the letter of the thread that runs it in its name, dynamic ones
// also a number: Even calls those that are even, Odd the others. SECONDS, for how many milliseconds each one
// runs, and the directory of the assemblies PlugA and PlugB.
using System;
using System.Diagnostics;
using System.IO;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.Loader;
using System.Threading;

namespace Known
{
    public static class Churn
    {
        const long Turn = 20000;
        static long sink;
        static int made;

        static Func<long, long> Make(string name)
        {
            var method = new DynamicMethod(name, typeof(long), new[] { typeof(long) }, typeof(Churn).Module);
            var il = method.GetILGenerator();
            var again = il.DefineLabel();
            il.DeclareLocal(typeof(long));
            il.DeclareLocal(typeof(long));
            il.MarkLabel(again);
            il.Emit(OpCodes.Ldloc_0); // s = s * 31 + i
            il.Emit(OpCodes.Ldc_I8, 31L);
            il.Emit(OpCodes.Mul);
            il.Emit(OpCodes.Ldloc_1);
            il.Emit(OpCodes.Add);
            il.Emit(OpCodes.Stloc_0);
            il.Emit(OpCodes.Ldloc_1); // i++
            il.Emit(OpCodes.Ldc_I4_1);
            il.Emit(OpCodes.Conv_I8);
            il.Emit(OpCodes.Add);
            il.Emit(OpCodes.Stloc_1);
            il.Emit(OpCodes.Ldloc_1);
            il.Emit(OpCodes.Ldarg_0);
            il.Emit(OpCodes.Blt, again);
            il.Emit(OpCodes.Ldloc_0);
            il.Emit(OpCodes.Ret);
            return (Func<long, long>)method.CreateDelegate(typeof(Func<long, long>));
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static long Even(Func<long, long> what)
        {
            return what(Turn) + 1;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static long Odd(Func<long, long> what)
        {
            return what(Turn) + 1;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void RunDynamic(string letter, long ms)
        {
            int n = Interlocked.Increment(ref made);
            var what = Make("Made" + letter + n);
            for (var clock = Stopwatch.StartNew(); clock.ElapsedMilliseconds < ms;)
                sink += n % 2 == 0 ? Even(what) : Odd(what);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void RunLoaded(string letter, long ms, string plugs)
        {
            var context = new AssemblyLoadContext(letter, true);
            byte[] assembly = File.ReadAllBytes(Path.Combine(plugs, "Plug" + letter + ".dll"));
            var type = context.LoadFromStream(new MemoryStream(assembly)).GetType("Known.Plug" + letter);
            var what = (Func<long, long>)type.GetMethod("Run").CreateDelegate(typeof(Func<long, long>));
            for (var clock = Stopwatch.StartNew(); clock.ElapsedMilliseconds < ms;)
                sink += what(Turn);
            context.Unload();
        }

        static void Turns(string letter, long seconds, long ms, string plugs)
        {
            for (var clock = Stopwatch.StartNew(); clock.ElapsedMilliseconds < 1000 * seconds;)
            {
                RunDynamic(letter, ms);
                RunLoaded(letter, ms, plugs);
                GC.Collect();
                GC.WaitForPendingFinalizers();
            }
        }

        // Their frames say which methods may run in them.
        [MethodImpl(MethodImplOptions.NoInlining)]
        static void ThreadA(long seconds, long ms, string plugs)
        {
            Turns("A", seconds, ms, plugs);
            sink++;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void ThreadB(long seconds, long ms, string plugs)
        {
            Turns("B", seconds, ms, plugs);
            sink++;
        }

        public static int Main(string[] args)
        {
            long seconds = long.Parse(args[0]), ms = long.Parse(args[1]);
            string plugs = args[2];
            var a = new Thread(() => ThreadA(seconds, ms, plugs));
            var b = new Thread(() => ThreadB(seconds, ms, plugs));
            a.Start();
            b.Start();
            a.Join();
            b.Join();
            Console.WriteLine("made " + made);
            return sink == 0 ? 1 : 0;
        }
    }
}
