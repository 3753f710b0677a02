// SPDX-License-Identifier: Apache-2.0
//! The same in Rust: a generic function, a method of a trait, a closure.

extern "C" {
    fn clock() -> i64; // CPU time in microseconds
}

fn cpu_time() -> f64 { // truth: truth::cpu_time
    unsafe { clock() as f64 / 1e6 } // calls clock
}

const ROUNDS: u32 = 2_000_000;

#[inline(always)]
fn scramble(mut x: u64) -> u64 { // truth: truth::scramble
    x ^= x << 13; // burn
    x ^= x >> 7; // burn
    x ^= x << 17; // burn
    x // burn
}

#[inline(always)]
fn twice(x: u64) -> u64 { // truth: truth::twice
    let y = scramble(x); // calls truth::scramble
    scramble(y ^ 3) // calls truth::scramble
}

trait Shape {
    fn area(&self, x: u64) -> u64;
}

struct Square(u32);

impl Shape for Square {
    #[inline(never)]
    fn area(&self, mut x: u64) -> u64 { // truth: <truth::Square as truth::Shape>::area
        let mut i = 0;
        while i < self.0 { // burn
            x = twice(x); // calls truth::twice
            i += 1; // burn
        }
        x
    }
}

#[inline(never)]
fn generic<T: Copy + Into<u64>>(x: T, mut y: u64) -> u64 { // truth: truth::generic
    let mut i = 0;
    while i < ROUNDS { // burn
        y ^= (y << 3) ^ (y >> 7); // burn
        i += 1; // burn
    }
    y ^ x.into()
}

#[inline(never)]
fn apply<F: Fn(u64) -> u64>(f: &F, x: u64) -> u64 { // truth: truth::apply
    let y = f(x); // calls truth::with_closure::{{closure}}
    std::hint::black_box(y)
}

#[inline(never)]
fn with_closure(x: u64) -> u64 { // truth: truth::with_closure
    let burn = |mut y: u64| { // truth: truth::with_closure::{{closure}}
        let mut i = 0;
        while i < ROUNDS { // burn
            y = scramble(y); // calls truth::scramble
            i += 1; // burn
        }
        y
    };
    let z = apply(&burn, x); // calls truth::apply
    std::hint::black_box(z)
}

#[inline(never)]
fn once(shape: &dyn Shape, took: &mut [f64; 3], x: u64) -> u64 { // truth: truth::once
    let t0 = cpu_time(); // calls truth::cpu_time
    let a = shape.area(x); // calls <truth::Square as truth::Shape>::area
    let t1 = cpu_time(); // calls truth::cpu_time
    let b = generic(7u32, a); // calls truth::generic
    let t2 = cpu_time(); // calls truth::cpu_time
    let c = with_closure(b); // calls truth::with_closure
    took[0] += t1 - t0;
    took[1] += t2 - t1;
    took[2] += cpu_time() - t2; // calls truth::cpu_time
    std::hint::black_box(c)
}

fn main() { // truth: truth::main
    let seconds: f64 = std::env::args().nth(1).map_or(1.0, |s| s.parse().unwrap());
    let (mut took, mut x) = ([0f64; 3], 88172645463325252u64);
    let square = std::hint::black_box(Square(ROUNDS));
    while cpu_time() < seconds { // calls truth::cpu_time
        x = once(&square, &mut took, x); // calls truth::once
    }
    println!("<truth::Square as truth::Shape>::area {}", took[0]);
    println!("truth::generic {}", took[1]);
    println!("truth::with_closure {}", took[2]);
}
