%% SPDX-License-Identifier: Apache-2.0
%% Binaries of several parts: each takes a call of C code, the first one not behind the same instruction as the last one. Terms
%% are compared in between, deeper and less deep, by code that leaves old stack pointers in registers. For the first
%% argument's seconds of CPU time.
-module(binaries).
-export([main/1, shallow/3, outer/1, inner/1, same/1, deep/3, compare/2]).

main([Seconds]) ->
    Until = cpu_ms() + 1000 * list_to_integer(Seconds),
    turns(Until, {1, {2, 3}}, {1, {2, 4}}, binary:copy(<<7>>, 300000)),
    halt(0).

cpu_ms() -> element(1, erlang:statistics(runtime)).

turns(Until, X, Y, B) ->
    case cpu_ms() < Until of
        true -> loop(200, X, Y, B), turns(Until, X, Y, B);
        false -> ok
    end.

loop(0, _, _, _) -> ok;
loop(N, X, Y, B) -> shallow(X, Y, B), both(X, Y, B), loop(N - 1, X, Y, B).

shallow(X, Y, B) ->
    case X =:= Y of
        true -> 0;
        false -> R = outer(B), R + 1
    end.

outer(B) -> R = inner(B), R + 1.

inner(B) -> T = same(B), C = <<B/binary, 1:32, T/binary, 3:16, B/binary>>, byte_size(C).

same(B) -> B.

both(X, Y, B) -> R = compare(X, Y), S = flat(B), {R, S}.

compare(X, Y) -> R = deep(5, X, Y), [R].

deep(0, X, Y) -> R = X =:= Y, [R];
deep(N, X, Y) -> R = deep(N - 1, X, Y), [R].

flat(B) -> C = <<B/binary, 1:32, B/binary, 3:16, B/binary>>, byte_size(C).
