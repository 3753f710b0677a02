-- SPDX-License-Identifier: Apache-2.0
-- Functions that differ only by name, and know how long they ran. One argument: seconds. Prints the CPU time of each
-- leaf in microseconds. Lines that are looked for end in a mark.
local clock = os.clock
local seconds = tonumber(arg[1]) or 5
local took = {}

-- The same work in each: the time is in the leaf's own lines.
local function leaf_one(n)
	local x = 0
	for i = 1, n do
		x = (x + i * 7) % 1000003 -- one
	end
	return x
end

local function leaf_two(n)
	local x = 0
	for i = 1, n do
		x = (x + i * 7) % 1000003 -- two
	end
	return x
end

function leaf_three(n)
	local x = 0
	for i = 1, n do
		x = (x + i * 7) % 1000003 -- three
	end
	return x
end

local M = {}
function M.leaf_four(n)
	local x = 0
	for i = 1, n do
		x = (x + i * 7) % 1000003 -- four
	end
	return x
end

function M:leaf_five(n)
	local x = 0
	for i = 1, n do
		x = (x + i * 7) % 1000003 -- five
	end
	return x, n
end

local function deep(depth, n)
	if depth == 0 then
		return (leaf_one(n)) -- bottom
	end
	local r = deep(depth - 1, n) -- deeper
	return r + 1
end

local function caught(n)
	local fine = pcall(function()
		leaf_two(n) -- protected
		error("as it should")
	end)
	return fine
end

local function made(k)
	return function(n)
		return leaf_three(n + k) -- closure
	end
end

local function body(n)
	while true do
		local _ = M.leaf_four(n) -- coroutine
		n = coroutine.yield(n)
	end
end

local other = coroutine.wrap(body)

local function replaced(n)
	-- string.gsub is a function in C, which calls back.
	return (string.gsub("abc", "b", function(_)
		return tostring((M:leaf_five(n))) -- callback
	end))
end

local function timed(name, f, ...)
	local before = clock()
	f(...)
	took[name] = (took[name] or 0) + clock() - before
end

local function turns(stop, n)
	local closure = made(1)
	while clock() < stop do
		timed("one", deep, 20, n)
		timed("two", caught, 2 * n)
		timed("three", closure, 3 * n)
		timed("four", other, 4 * n)
		timed("five", replaced, 5 * n)
	end
end

local slow = not (jit and jit.status())
turns(clock() + seconds, slow and 10000 or 200000) -- main
for _, name in ipairs({"one", "two", "three", "four", "five"}) do
	print(string.format("%s %d", name, math.floor(took[name] * 1e6)))
end
