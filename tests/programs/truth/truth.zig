// SPDX-License-Identifier: Apache-2.0
//! The same in Zig, as functions that truth_zig.c calls.
const ROUNDS: u32 = 2_000_000;

inline fn scramble(y: u64) u64 { // truth: truth.scramble
    var x = y; // burn
    x ^= x << 13; // burn
    x ^= x >> 7; // burn
    x ^= x << 17; // burn
    return x; // burn
}

inline fn twice(x: u64) u64 { // truth: truth.twice
    const y = scramble(x); // calls truth.scramble
    return scramble(y ^ 3); // calls truth.scramble
}

noinline fn nested(y: u64) u64 { // truth: truth.nested
    var x = y;
    var i: u32 = 0;
    while (i < ROUNDS) : (i += 1) { // burn
        x = twice(x); // calls truth.twice
    }
    return x;
}

noinline fn generic(comptime T: type, y: T) T { // truth: truth.generic
    var x = y;
    var i: u32 = 0;
    while (i < ROUNDS) : (i += 1) { // burn
        x ^= (x << 3) ^ (x >> 7); // burn
    }
    return x;
}

export fn burn_nested(x: u64) u64 { // truth: burn_nested
    const y = nested(x); // calls truth.nested
    return y ^ 5;
}

export fn burn_generic(x: u64) u64 { // truth: burn_generic
    const y = generic(u64, x); // calls truth.generic
    return y ^ 7;
}
