%% SPDX-License-Identifier: Apache-2.0
%% Functions that differ only by name, under a recursion, a fun, a comprehension, a catch and a process: at the end,
%% how long each ran. Lines that tests name end in a mark.
-module(truth).
-export([main/1, bifs/2, leaf_one/2, leaf_two/2, leaf_three/2, leaf_four/2]).

main([Seconds]) ->
    Until = now_ms() + 1000 * list_to_integer(Seconds),
    Me = self(),
    spawn_link(fun() -> Me ! {done, turns(Until, #{})} end),
    receive {done, Took} -> [io:format("~s ~b~n", [K, V]) || {K, V} <- maps:to_list(Took)] end,
    halt(0).

now_ms() -> erlang:monotonic_time(millisecond).

turns(Until, Took) ->
    case now_ms() < Until of
        true ->
            T1 = timed(one, fun() -> deep(20, fun() -> leaf_one(60000, 1) end) end, Took),
            T2 = timed(two, fun() -> comprehension(20) end, T1),
            T3 = timed(three, fun() -> caught(20000) end, T2),
            T4 = timed(four, fun() -> other_process(10000) end, T3),
            Big = lists:seq(1, 300),
            T5 = timed(five, fun() -> bifs(100, Big) end, T4),
            turns(Until, T5); %% turns
        false ->
            Took
    end.

timed(Name, F, Took) ->
    Began = erlang:monotonic_time(microsecond),
    F(),
    T = erlang:monotonic_time(microsecond) - Began,
    maps:update_with(Name, fun(V) -> V + T end, T, Took).

deep(0, F) ->
    R = F(), %% bottom
    R + 1;
deep(N, F) ->
    R = deep(N - 1, F), %% deeper
    R + 1.

comprehension(N) -> [leaf_two(2000, I) || I <- lists:seq(1, N)].

caught(N) ->
    try
        R = leaf_three(N, 1), %% tried
        R + 1
    catch
        error:_ -> 0
    end.

other_process(N) ->
    Me = self(),
    spawn_link(fun() -> R = leaf_four(N, 1), Me ! {four, R} end),
    receive {four, R} -> R end.

%% In C code nearly all the time.
bifs(0, _) -> 0;
bifs(N, Big) ->
    R = erlang:phash2(Big), %% five
    R + bifs(N - 1, Big).

leaf_one(0, A) -> A;
leaf_one(N, A) -> leaf_one(N - 1, (A * 31 + N) band 16#ffffff). %% one
leaf_two(0, A) -> A;
leaf_two(N, A) -> leaf_two(N - 1, (A * 31 + N) band 16#ffffff). %% two
leaf_three(0, A) -> A;
leaf_three(N, A) -> leaf_three(N - 1, (A * 31 + N) band 16#ffffff). %% three
leaf_four(0, A) -> A;
leaf_four(N, A) -> leaf_four(N - 1, (A * 31 + N) band 16#ffffff). %% four
