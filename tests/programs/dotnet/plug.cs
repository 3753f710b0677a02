// SPDX-License-Identifier: Apache-2.0
// An assembly that is loaded and unloaded, in two makes, which differ only by a name.
using System.Runtime.CompilerServices;

namespace Known
{
#if A
    public static class PlugA
#else
    public static class PlugB
#endif
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static long Run(long n) { long s = n; for (long i = 0; i < n; i++) s += i * s ^ (s >> 3); return s; }

        public static void Main()
        {
        }
    }
}
