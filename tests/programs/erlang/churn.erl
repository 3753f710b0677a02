%% SPDX-License-Identifier: Apache-2.0
%% Two processes that load a module, run its leaf, delete and purge it, all the time: what one has left is where the
%% other's next module goes. Modules of run_a have leaves of names in a, those of run_b in b. How many turns of its loop
%% each leaf runs says how long a module lives.
-module(churn).
-export([main/1, run_a/2, run_b/2]).

main([Seconds, Turns]) ->
    Until = cpu_ms() + 1000 * list_to_integer(Seconds),
    Live = list_to_integer(Turns),
    Me = self(),
    Workers = [spawn_link(fun() -> Me ! {self(), work(F, modules(Prefix), Live, Until, 0)} end) || {F, Prefix} <- [{run_a, "a"}, {run_b, "b"}]],
    Loaded = [receive {W, N} -> N end || W <- Workers],
    io:format("~b modules~n", [lists:sum(Loaded)]),
    halt(0).

%% Of all threads.
cpu_ms() -> element(1, erlang:statistics(runtime)).

%% Of different sizes, so that they lie at different places.
modules(Prefix) -> [module(Prefix, N) || N <- lists:seq(1, 12)].

module(Prefix, N) ->
    Name = Prefix ++ integer_to_list(N),
    Text = [io_lib:format("-module(~s). -export([top/1]). top(N) -> R = ~s_leaf(N, 1), R + 1. ", [Name, Name]),
            [io_lib:format("~s_other~b(X) -> {X, ~b}. ", [Name, I, I]) || I <- lists:seq(1, N)],
            "-compile(nowarn_unused_function). -compile({inline_size, 0}). ",
            io_lib:format("~s_leaf(0, A) -> A; ~s_leaf(N, A) -> ~s_leaf(N - 1, (A * 31 + N) band 16#ffffff). ", [Name, Name, Name])],
    {ok, Module, Code} = compile:forms(forms(lists:flatten(Text)), []),
    {Module, Code}.

forms(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text),
    [begin {ok, Form} = erl_parse:parse_form(F), Form end || F <- split(Tokens, [])].

split([], _) -> [];
split([{dot, _} = D | Rest], Form) -> [lists:reverse([D | Form]) | split(Rest, [])];
split([T | Rest], Form) -> split(Rest, [T | Form]).

work(F, [{Module, Code} | Rest], Live, Until, N) ->
    case cpu_ms() < Until of
        true ->
            {module, Module} = code:load_binary(Module, "nofile", Code),
            churn:F(Module, Live),
            true = code:delete(Module),
            code:purge(Module),
            work(F, Rest ++ [{Module, Code}], Live, Until, N + 1);
        false ->
            N
    end.

run_a(Module, N) -> R = Module:top(N), R + 1.
run_b(Module, N) -> R = Module:top(N), R + 1.
