-- SPDX-License-Identifier: Apache-2.0
-- Makes functions from text, runs them until they are traces, and drops them, for as many seconds as its first argument says; all
-- traces are flushed from time to time. Function N lies in the chunk made_N and calls leaf_N alone: two of them differ in nothing
-- but names. Some are there at any time, of which each lives for as many milliseconds of CPU time as the second argument says. With LuaJIT,
-- the thread is "f_N" while N runs.
local ALIVE, FLUSH = 10, 0.5
local seconds, life = tonumber(arg[1]), tonumber(arg[2]) / 1000
local clock = os.clock
local name_thread = function() end

if jit then
	local ffi = require("ffi")
	ffi.cdef("int prctl(int option, const char *name);")
	name_thread = function(name) ffi.C.prctl(15, name) end -- PR_SET_NAME
end

local function make(n)
	local text = ([[
local function leaf_%d(x)
	for i = 1, 3000 do
		x = (x * 31 + i) %% 1000003
	end
	return x
end

return function(x)
	local s = 0
	for i = 1, 10 do
		s = s + leaf_%d(x + i)
	end
	return s
end]]):format(n, n)
	return { n = n, call = (loadstring or load)(text, "=made_" .. n)() }
end

local alive, number, sink, last, flushed, kept = {}, 0, 0, -1, 0, {}

local finish = os.time() + seconds

while os.time() < finish do
	local now = clock()
	if now - last >= life / ALIVE then
		alive[#alive + 1] = make(number)
		number, last = number + 1, now
		if #alive > ALIVE then
			table.remove(alive, 1)
		end
	end
	for _, f in ipairs(alive) do
		name_thread("f_" .. f.n)
		sink = sink + f.call(number)
		kept[#kept % 1000 + 1] = { f.n }
	end
	name_thread("between")
	if jit and now - flushed >= FLUSH then
		jit.flush()
		flushed = now
	end
end
print(number)
