%% SPDX-License-Identifier: Apache-2.0
%% Functions that differ only by name, under a recursion, a fun, a comprehension, a catch and a process: at the end,
%% how many turns of its loop each ran. They are the same turns, and take the same CPU time whatever else runs. Lines that
%% tests name end in a mark.
-module(truth).
-export([main/1, bifs/2, leaf_one/2, leaf_two/2, leaf_three/2, leaf_four/2]).

main([Seconds]) ->
    Until = cpu_ms() + 1000 * list_to_integer(Seconds),
    Me = self(),
    spawn_link(fun() -> Me ! {done, turns(Until, #{})} end),
    receive {done, Ran} -> [io:format("~s ~b~n", [K, V]) || {K, V} <- maps:to_list(Ran)] end,
    halt(0).

%% Of all threads.
cpu_ms() -> element(1, erlang:statistics(runtime)).

turns(Until, Ran) ->
    case cpu_ms() < Until of
        true ->
            R1 = counted(one, 60000, fun(N) -> deep(20, fun() -> leaf_one(N, 1) end) end, Ran),
            R2 = counted(two, 40000, fun(N) -> comprehension(N div 2000) end, R1),
            R3 = counted(three, 20000, fun(N) -> caught(N) end, R2),
            R4 = counted(four, 10000, fun(N) -> other_process(N) end, R3),
            Big = lists:seq(1, 300),
            R5 = counted(five, 100, fun(N) -> bifs(N, Big) end, R4),
            turns(Until, R5); %% turns
        false ->
            Ran
    end.

counted(Name, N, F, Ran) ->
    F(N),
    maps:update_with(Name, fun(V) -> V + N end, N, Ran).

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
