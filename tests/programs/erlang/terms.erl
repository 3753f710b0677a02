%% SPDX-License-Identifier: Apache-2.0
%% Functions that compare and look up large terms, which C code does that is called without saving the process' stack
%% pointer, at the end of a recursion that has made the stack longer since it was saved.
-module(terms).
-export([main/1]).

-record(data, {list, tuple, map, hashed}).

main([Seconds]) ->
    List = lists:seq(1, 400),
    Data = #data{list = List, tuple = list_to_tuple(List), map = maps:from_list([{key(K), K} || K <- lists:seq(1, 20)]),
                 hashed = maps:from_list([{key(K), K} || K <- lists:seq(1, 200)])},
    %% On no heap: that of the process stays small, and has no page that was never touched.
    persistent_term:put(a, Data),
    persistent_term:put(b, binary_to_term(term_to_binary(Data))),
    Until = cpu_ms() + 1000 * list_to_integer(Seconds),
    {Pid, Ref} = spawn_monitor(fun() -> turns(Until, persistent_term:get(a), persistent_term:get(b)) end),
    register(terms, Pid),
    receive {'DOWN', Ref, process, Pid, normal} -> halt(0) end.

key(K) -> {K, [K, K]}.

%% Of all threads.
cpu_ms() -> element(1, erlang:statistics(runtime)).

turns(Until, A, B) ->
    case cpu_ms() < Until of
        true ->
            run(1000, {same, A, B}),
            run(1000, {less, A, B}),
            run(1000, {equal, A, B}),
            run(1000, {stored, A, B}),
            run(1000, {unequal, A, B}),
            run(500, {both, A, B}),
            run(10000, {matched, A, B}),
            run(10000, {hashed, A, B}),
            run(10000, {got, A, B}),
            turns(Until, A, B);
        false ->
            ok
    end.

run(0, _) -> ok;
run(N, What) ->
    deep(8, What),
    run(N - 1, What).

deep(0, What) -> compare(old(12, What)) + 1;
deep(N, What) -> deep(N - 1, What) + 1.

%% Leaves return addresses where the frame of what is called next will be: its caller has no words of its own meanwhile.
old(0, What) -> What;
old(N, What) -> id(old(N - 1, What)).

%% No funs: to call one is C code too where there is no compiler.
compare({same, A, B}) -> same(A, B);
compare({less, A, B}) -> less(A, B);
compare({equal, A, B}) -> equal(A, B);
compare({stored, A, B}) -> stored(A, B);
compare({unequal, A, B}) -> unequal(A, B);
compare({both, A, B}) -> both(A, B);
compare({matched, A, B}) -> matched(A, B);
compare({hashed, A, B}) -> hashed(A, B);
compare({got, A, B}) -> got(A, B).

same(#data{list = A}, #data{list = B}) ->
    case A =:= B of
        true -> id(1) + 1;
        false -> id(2)
    end.

less(#data{list = A}, #data{list = B}) ->
    case A < B of
        true -> id(1) + 1;
        false -> id(2)
    end.

equal(#data{tuple = A}, #data{tuple = B}) ->
    case A == B of
        true -> id(1) + 1;
        false -> id(2)
    end.

%% The result is the first that is written to the frame.
stored(#data{list = A}, #data{list = B}) ->
    X = A =:= B,
    one(X, id(1)).

unequal(#data{list = A}, #data{list = B}) ->
    X = A =/= B,
    one(X, id(1)).

both(#data{list = A, tuple = C}, #data{list = B, tuple = D}) ->
    X = C == D,
    Y = A =:= B,
    one(X, id(1)) + one(Y, id(1)).

one(true, N) -> N;
one(false, N) -> N + 1.

matched(#data{map = M}, _) ->
    K = id({20, [20, 20]}),
    #{K := V} = M,
    id(V) + 1.

hashed(#data{hashed = M}, _) ->
    K = id({100, [100, 100]}),
    #{K := V} = M,
    id(V) + 1.

got(#data{hashed = M}, _) ->
    K = id({100, [100, 100]}),
    V = maps:get(K, M),
    id(V) + 1.

id(X) -> X.
