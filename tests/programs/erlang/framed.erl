%% SPDX-License-Identifier: Apache-2.0
%% A function that begins its frame where return addresses of calls before still lie, which it did not make.
-module(framed).
-export([main/1]).

main([Seconds]) ->
    turns(cpu_ms() + 1000 * list_to_integer(Seconds)),
    halt(0).

%% Of all threads.
cpu_ms() -> element(1, erlang:statistics(runtime)).

turns(Until) ->
    case cpu_ms() < Until of
        true ->
            loop(1000000, 1),
            turns(Until);
        false ->
            ok
    end.

loop(0, A) -> A;
loop(N, A) ->
    B = down(3, A),
    C = framed(B),
    loop(N - 1, C).

down(0, A) -> same(A) + 1;
down(N, A) ->
    B = down(N - 1, A),
    B + 1.

framed(N) ->
    A = same(N),
    B = same(A),
    C = same(B),
    D = same(C),
    A + B + C + D.

same(A) -> A band 16#ffff.
