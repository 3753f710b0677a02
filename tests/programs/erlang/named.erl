%% SPDX-License-Identifier: Apache-2.0
%% Processes that are told apart by their names, each in a leaf of its own: registered, by turns under two names, begun
%% by spawn, by proc_lib, as a gen_server, as one whose dictionary is crowded, and as one that is collected all the time.
%% Before that, a second of work for none of them, in which the program becomes known.
-module(named).
-behaviour(gen_server).
-export([main/1, plain/1, begun/1, init/1, handle_call/3, handle_cast/2]).
-export([registered_leaf/2, first_leaf/2, second_leaf/2, plain_leaf/2, fun_leaf/2, begun_leaf/2, server_leaf/2, crowded_leaf/2]).

main([Seconds]) ->
    warm(cpu_ms() + 1000),
    Until = cpu_ms() + 1000 * list_to_integer(Seconds),
    Begin = [fun() -> spawn_monitor(fun() -> register(the_server, self()), turns(registered_leaf, Until) end) end,
             fun() -> spawn_monitor(fun() -> renamed(Until) end) end,
             fun() -> spawn_monitor(?MODULE, plain, [Until]) end,
             fun() -> spawn_monitor(fun() -> turns(fun_leaf, Until) end) end,
             fun() -> monitored(proc_lib:spawn(?MODULE, begun, [Until])) end] ++
            [fun() -> {ok, P} = gen_server:start(?MODULE, {Kind, Until}, []), monitored(P) end || Kind <- [server, crowded, collected]],
    Begun = [B() || B <- Begin],
    [receive {'DOWN', R, process, _, normal} -> ok end || {_, R} <- Begun],
    halt(0).

%% Of all threads.
cpu_ms() -> element(1, erlang:statistics(runtime)).

warm(Until) ->
    case cpu_ms() < Until of
        true -> lists:sum(lists:seq(1, 20000)), warm(Until);
        false -> ok
    end.

monitored(P) -> {P, monitor(process, P)}.

turns(Leaf, Until) ->
    case cpu_ms() < Until of
        true -> ?MODULE:Leaf(20000, 1), turns(Leaf, Until);
        false -> ok
    end.

renamed(Until) ->
    case cpu_ms() < Until of
        true ->
            register(first_name, self()),
            ?MODULE:first_leaf(2000, 1),
            unregister(first_name),
            register(second_name, self()),
            ?MODULE:second_leaf(2000, 1),
            unregister(second_name),
            renamed(Until);
        false -> ok
    end.

plain(Until) -> turns(plain_leaf, Until).
begun(Until) -> turns(begun_leaf, Until).

init({Kind, Until}) ->
    gen_server:cast(self(), run),
    {ok, {Kind, Until}}.

handle_call(_, _, State) -> {reply, ok, State}.

handle_cast(run, {server, Until} = State) ->
    turns(server_leaf, Until),
    {stop, normal, State};
handle_cast(run, {crowded, Until} = State) ->
    [put(K, K) || K <- lists:seq(1, 300)],
    turns(crowded_leaf, Until),
    {stop, normal, State};
handle_cast(run, {collected, Until} = State) ->
    collect(lists:seq(1, 20000), Until),
    {stop, normal, State}.

%% Most of its time goes to its garbage.
collect(Kept, Until) ->
    case cpu_ms() < Until of
        true ->
            Next = [X + 1 || X <- Kept],
            erlang:garbage_collect(),
            collect(Next, Until);
        false -> Kept
    end.

registered_leaf(0, A) -> A;
registered_leaf(N, A) -> registered_leaf(N - 1, (A * 31 + N) band 16#ffffff).
first_leaf(0, A) -> A;
first_leaf(N, A) -> first_leaf(N - 1, (A * 31 + N) band 16#ffffff).
second_leaf(0, A) -> A;
second_leaf(N, A) -> second_leaf(N - 1, (A * 31 + N) band 16#ffffff).
plain_leaf(0, A) -> A;
plain_leaf(N, A) -> plain_leaf(N - 1, (A * 31 + N) band 16#ffffff).
fun_leaf(0, A) -> A;
fun_leaf(N, A) -> fun_leaf(N - 1, (A * 31 + N) band 16#ffffff).
begun_leaf(0, A) -> A;
begun_leaf(N, A) -> begun_leaf(N - 1, (A * 31 + N) band 16#ffffff).
server_leaf(0, A) -> A;
server_leaf(N, A) -> server_leaf(N - 1, (A * 31 + N) band 16#ffffff).
crowded_leaf(0, A) -> A;
crowded_leaf(N, A) -> crowded_leaf(N - 1, (A * 31 + N) band 16#ffffff).
