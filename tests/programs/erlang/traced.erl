%% SPDX-License-Identifier: Apache-2.0
%% A function that is traced, and one that is counted besides, by its time: what they return to is not only their caller. Of
%% the kind of the second argument, for the first one's seconds of CPU time.
-module(traced).
-export([main/1, top/1, middle/2, traced/2, leaf/2]).

main([Seconds, Kind]) ->
    Until = cpu_ms() + 1000 * list_to_integer(Seconds),
    trace(Kind),
    turns(Until),
    halt(0).

trace("return") ->
    erlang:trace(self(), true, [call, {tracer, spawn(fun sink/0)}]),
    erlang:trace_pattern({traced, traced, 2}, [{'_', [], [{return_trace}]}], [local]);
trace("time") ->
    erlang:trace(self(), true, [call]),
    erlang:trace_pattern({traced, traced, 2}, true, [local, call_time]),
    erlang:trace_pattern({traced, middle, 2}, true, [local, call_time]).

sink() -> receive _ -> sink() end.

cpu_ms() -> element(1, erlang:statistics(runtime)).

turns(Until) ->
    case cpu_ms() < Until of
        true -> top(200), turns(Until);
        false -> ok
    end.

top(N) -> R = middle(N, 1), R + 1.

middle(N, A) -> R = traced(N, A), R + 1.

traced(N, A) -> R = leaf(N * 1000, A), R + 1.

leaf(0, A) -> A;
leaf(N, A) -> leaf(N - 1, (A * 31 + N) band 16#ffffff).
