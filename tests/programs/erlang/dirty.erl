%% SPDX-License-Identifier: Apache-2.0
%% A function in C that a dirty scheduler runs, as it may take long: a large file is read, for the first argument's
%% seconds: most of it is the kernel's time, which Erlang does not count as CPU time.
-module(dirty).
-export([main/1, reads/1, turns/2]).

main([Seconds]) ->
    Until = now_ms() + 1000 * list_to_integer(Seconds),
    File = filename:join(filename:dirname(code:which(?MODULE)), "large"),
    ok = file:write_file(File, binary:copy(<<7>>, 32 bsl 20)),
    turns(Until, File),
    halt(0).

now_ms() -> erlang:monotonic_time(millisecond).

turns(Until, File) ->
    case now_ms() < Until of
        true -> reads(File), turns(Until, File);
        false -> file:delete(File)
    end.

reads(File) -> {ok, R} = prim_file:read_file(File), {byte_size(R), File}.
