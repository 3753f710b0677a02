# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0
# Runs for as many seconds as its argument says. Every call in it stands in ruby.truth, with its lines.
def one(x)
  i = 0
  while i < 3000
    x = (x * 31 + i) % 1_000_003
    i += 1
  end
  x
end

def two(x)
  i = 0
  while i < 6000
    x = (x * 31 + i) % 1_000_003
    i += 1
  end
  x
end

def three(x)
  i = 0
  while i < 9000
    x = (x * 31 + i) % 1_000_003
    i += 1
  end
  x
end

def recurse(depth, x)
  if depth > 0
    x += 1
    return recurse(depth - 1, x) +
           1
  end
  three(x)
end

module Shared
  def shared(x)
    two(x)
  end

  def self.helper(x)
    one(x)
  end
end

module Outer
  class Base
    include Shared

    def plain(x)
      inner(x) +
        shared(x)
    end

    def inner(x)
      one(x)
    end

    def self.stat(x)
      new.plain(x)
    end

    def late(x)
      two(x)
    end

    def to_s
      one(3).to_s
    end

    def method_missing(name, x)
      name == :magic ? two(x) : super
    end

    def respond_to_missing?(*)
      true
    end

    define_method(:defined) do |x|
      one(x)
    end
  end

  class Derived < Base
    def inner(x)
      super +
        two(x)
    end

    class << self
      def own(x)
        new.plain(x)
      end
    end

    alias other late

    def closures(x)
      add = lambda do |y|
        one(y)
      end
      [x, x + 1].each do |z|
        x += add.call(z)
        2.times do |k|
          x += two(k)
        end
      end
      x
    end
  end
end

module Wrap
  def late(x)
    super +
      one(x)
  end
end

class Wrapped < Outer::Base
  prepend Wrap
end

def fail_late(x)
  one(x)
  raise ArgumentError, "late"
end

def catches(x)
  fail_late(x)
rescue ArgumentError
  two(x)
ensure
  one(x)
end

def throws(x)
  catch(:done) do
    one(x)
    throw :done
  end
end

def unwinds(x)
  fail_late(x)
ensure
  one(x)
end

def callbacks(x)
  sorted = [3, 1, 2].sort do |a, b|
    one(x)
    a <=> b
  end
  text = "a1b2".gsub(/[0-9]/) do |m|
    one(m.to_i).to_s
  end
  total = sorted.inject do |a, b|
    a + two(b)
  end
  defaults = Hash.new { |_, k| two(k) }
  total + defaults[x] + text.size
end

def matches(x)
  if "abc" =~ /b/
    x += two(x)
  end
  $~ ? x : 0
end

def counter(x)
  lambda do |y|
    two(x + y)
  end
end

def evaluates(x)
  eval("one(x)", binding, "evaluated", 1) +
    Object.new.instance_eval { two(x) }
end

def fibers(x)
  fiber = Fiber.new do |y|
    in_fiber(y)
    Fiber.yield y
    in_fiber(y)
  end
  fiber.resume(x)
  fiber.resume
end

def in_fiber(x)
  two(x)
end

def each_number
  return to_enum(:each_number) unless block_given?

  yield one(1)
  yield one(2)
end

def enumerates(x)
  numbers = each_number
  x + numbers.next +
    numbers.next
end

def yields(x)
  each_number do |y|
    x += two(y)
  end
  x
end

def by_symbol(x)
  [Wrapped.new, Wrapped.new].map(&:to_s).size +
    Outer::Base.new.method(:inner).call(x)
end

def work(late)
  recurse(9, 1)
  Outer::Derived.new.plain(2)
  Outer::Base.stat(3)
  Outer::Derived.own(4)
  Outer::Derived.new.closures(5)
  Outer::Derived.new.magic(6)
  text = "#{Outer::Derived.new}"
  Outer::Base.new.defined(7)
  Outer::Derived.new.other(8)
  Wrapped.new.late(9)
  Shared.helper(10)
  catches(11)
  throws(12)
  unwinds(13) rescue one(13)
  callbacks(14)
  matches(15)
  late.call(16)
  evaluates(17)
  fibers(18)
  enumerates(19)
  yields(20)
  by_symbol(text.size)
end

def now
  Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

deadline = now + (ARGV[0] || 10).to_f
threads = Array.new((ARGV[1] || 0).to_i) do
  Thread.new do
    late = counter(1)
    work(late) while now < deadline
  end
end
late = counter(1)
work(late) while now < deadline
threads.each(&:join)
