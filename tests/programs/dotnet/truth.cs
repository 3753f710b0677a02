// SPDX-License-Identifier: Apache-2.0
// Functions that differ only by name and know how long they ran: each leaf is called in its own way, which its stack must
// show, for so many milliseconds of CPU time, and the program prints how many microseconds each one took. Calls are never the
// last thing that their caller does, as optimized code leaves its frame then, but the first of their statement, of which
// the compiler then keeps the place. Lines that calls are on have marks. Before all, it runs a little until there is a file
// of this name.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;

namespace Known
{
    public interface IWork<T>
    {
        long Run(T n);
    }

    public abstract class Work
    {
        public abstract long Run(long n);
    }

    public class Virtual : Work
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public override long Run(long n)
        {
            return Leaves.Three(n) + 1; // virtual
        }
    }

    public class Generic<TKey, TValue> : IWork<TValue>
    {
        public class Nested
        {
            [MethodImpl(MethodImplOptions.NoInlining)]
            public long Call<TOther>(TKey key, List<TOther> other, long n)
            {
                return Leaves.Four(n) + other.Count + (key == null ? 1 : 0); // nested
            }
        }

        readonly Nested nested = new Nested();
        readonly TKey key;

        public Generic(TKey key)
        {
            this.key = key;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        public long Run(TValue n)
        {
            return nested.Call(key, new List<string>(), Convert.ToInt64(n)) + 1; // generic
        }
    }

    public static class Leaves
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static long One(long n) { long s = n; for (long i = 0; i < n; i++) s += i * s ^ (s >> 3); return s; } // One
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static long Two(long n) { long s = n; for (long i = 0; i < n; i++) s += i * s ^ (s >> 3); return s; } // Two
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static long Three(long n) { long s = n; for (long i = 0; i < n; i++) s += i * s ^ (s >> 3); return s; } // Three
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static long Four(long n) { long s = n; for (long i = 0; i < n; i++) s += i * s ^ (s >> 3); return s; } // Four
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static long Five(long n) { long s = n; for (long i = 0; i < n; i++) s += i * s ^ (s >> 3); return s; } // Five
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static long Six(long n) { long s = n; for (long i = 0; i < n; i++) s += i * s ^ (s >> 3); return s; } // Six
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static long Seven(long n) { long s = n; for (long i = 0; i < n; i++) s += i * s ^ (s >> 3); return s; } // Seven
    }

    public static class Program
    {
        const long Turn = 2000;
        static long sink;
        static readonly Dictionary<string, long> Took = new Dictionary<string, long>();

        [MethodImpl(MethodImplOptions.NoInlining)]
        static long Deep(int n, long work)
        {
            if (n == 0)
                return Leaves.One(work) + 1; // bottom
            return Deep(n - 1, work) + 1; // deeper
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static long Caught(long n)
        {
            try
            {
                throw new InvalidOperationException("known");
            }
            catch (InvalidOperationException)
            {
                return Leaves.Five(n * 20) + 1; // caught
            }
            finally
            {
                sink++;
            }
        }

#if TRIMMED // a runtime without what a state machine needs
        [MethodImpl(MethodImplOptions.NoInlining)]
        static long Rest(long n)
        {
            return Leaves.Six(n) + 1; // rest
        }

        static Task<long> Later(long n)
        {
            return Task.Run(() => Rest(n) + 1);
        }
#else
        static async Task<long> Later(long n)
        {
            await Task.Yield();
            return Leaves.Six(n) + 1; // later
        }
#endif

        // Small frames that are made and taken down all the time: a pc in a prologue or an epilogue is the rule.
        [MethodImpl(MethodImplOptions.NoInlining)]
        static long Tiny(long a, long b)
        {
            return a * 3 + b; // tiny
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static long Small(object[] keep, long a, long b)
        {
            return Tiny(a, b) + Tiny(b, a) + keep.Length; // small
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static long Calls(long n)
        {
            object[] keep = new object[1];
            long s = n;
            for (long i = 0; i < n; i++)
                s += Small(keep, i, s); // calls
            return s;
        }

        // By a delegate of a static method: a thunk moves its arguments.
        static readonly Func<long, long, long> Delegate = Target;

        [MethodImpl(MethodImplOptions.NoInlining)]
        static long Target(long a, long b)
        {
            return a * 5 + b;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static long Delegates(long n)
        {
            long s = n;
            for (long i = 0; i < n; i++)
                s += Delegate(i, s);
            return s;
        }

        // Its first instruction faults.
        [MethodImpl(MethodImplOptions.NoInlining)]
        static long Length(string none)
        {
            return none.Length;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static long Handled(long n)
        {
            long s = n;
            for (long i = 0; i < 10 * n; i++)
                s += i * s;
            return s;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static long Faults(long n)
        {
            try
            {
                return Length(n == 0 ? "" : null) + 1;
            }
            catch (NullReferenceException)
            {
                return Handled(n) + 1;
            }
        }

        // Is stopped by the collector wherever it is.
        [MethodImpl(MethodImplOptions.NoInlining)]
        static long Collects(long n)
        {
            object keep = null;
            for (long i = 0; i < n; i++)
                keep = new byte[Stopped(i) % 1000 + 1000];
            return keep.GetHashCode();
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static long Stopped(long n)
        {
            return n * 3 & 1023;
        }

        // Code of the framework that was compiled before.
        [MethodImpl(MethodImplOptions.NoInlining)]
        static long Framework(long n)
        {
            var words = new string[200];
            for (int i = 0; i < words.Length; i++)
                words[i] = ((n + i) * 7919 % 1000).ToString();
            Array.Sort(words, StringComparer.Ordinal);
            return words[0].Length;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static long Warm(long n)
        {
            long s = 0;
            for (int i = 0; i < 100; i++)
                s += Framework(n);
            Thread.Sleep(50);
            return s;
        }

        // CPU time of the thread, or of the process, in ticks of 10 ms: the fields behind its name.
        static long Cpu(bool all)
        {
            string stat = File.ReadAllText(all ? "/proc/self/stat" : "/proc/thread-self/stat");
            string[] field = stat.Substring(stat.LastIndexOf(')') + 2).Split(' ');
            return long.Parse(field[11]) + long.Parse(field[12]);
        }

        static void Timed(string name, long ms, Func<long, long> what)
        {
            bool all = name == "Six"; // from
            long before = Cpu(all), next = 20;
            var clock = Stopwatch.StartNew();
            while (clock.ElapsedMilliseconds < next || 10 * (Cpu(all) - before) < ms)
            {
                if (clock.ElapsedMilliseconds >= next)
                    next = clock.ElapsedMilliseconds + 20;
                long got = what(Turn); // timed
                sink += got;
            }
            lock (Took)
                Took[name] = 10000 * (Cpu(all) - before); // to
        }

        // By two threads, each of which makes the other one stop.
        static void Collected(long ms)
        {
            var thread = new Thread(() => Timed("Collects", ms, Collects));
            thread.Start();
            Timed("Collects", ms, Collects);
            thread.Join();
        }

        public static int Main(string[] args)
        {
            long ms = long.Parse(args[0]);
            Work work = new Virtual();
            IWork<long> generic = new Generic<string, long>("key");
            while (!File.Exists(args[1]))
                sink += Warm(Turn);
            Timed("One", ms, n => Deep(20, n) + 1); // lambda1
            Timed("Two", ms, n => Leaves.Two(n) + 1); // lambda2
            Timed("Three", ms, work.Run);
            Timed("Four", ms, n => generic.Run(n) + 1); // lambda4
            Timed("Five", ms, Caught);
            Timed("Six", ms, n => Later(n).Result);
            var thread = new Thread(() => Timed("Seven", ms, n => Leaves.Seven(n) + 1)); // lambda7
            thread.Start();
            thread.Join();
            Timed("Calls", ms, Calls);
            Timed("Delegates", ms, Delegates);
            Timed("Faults", ms, Faults);
            Collected(ms);
            Timed("Framework", ms, Framework);
            foreach (var took in Took)
                Console.WriteLine(took.Key + " " + took.Value);
            return sink == 0 ? 1 : 0;
        }
    }
}
