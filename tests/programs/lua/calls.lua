-- SPDX-License-Identifier: Apache-2.0
-- Ways in which Lua's functions are called other than by a call: from C functions, by metamethods, in coroutines within
-- coroutines, and in one that has yielded within pcall. One argument: seconds. Prints the CPU time of each leaf in
-- microseconds, as truth.lua.
local clock = os.clock
local seconds = tonumber(arg[1]) or 5
local took = {}

local function work(n)
	local x = 0
	for i = 1, n do
		x = (x + i * 7) % 1000003
	end
	return x
end

-- A leaf each, that calls the work: the way to it is what counts.
function leaf_sort(n) local x = work(n) return x end
function leaf_index(n) local x = work(n) return x end
function leaf_iterate(n) local x = work(n) return x end
function leaf_nested(n) local x = work(n) return x end
function leaf_across(n) local x = work(n) return x end
function leaf_again(n) local x = work(n) return x end

local function sorted(n)
	local first = true
	table.sort({2, 1}, function(a, b)
		if first then
			first = false
			leaf_sort(n)
		end
		return a < b
	end)
end

local lazy = setmetatable({}, {__index = function(_, n)
	local x = leaf_index(n)
	return x
end})
local function indexed(n)
	local x = lazy[n]
	return x
end

local function iterated(n)
	for x in function(_, last)
		if not last then
			return (leaf_iterate(n))
		end
	end do
		n = x
	end
end

local function inner(n)
	while true do
		local x = leaf_nested(n)
		n = coroutine.yield(x)
	end
end
local function outer(n)
	local co = coroutine.wrap(inner)
	while true do
		local x = co(n)
		n = coroutine.yield(x)
	end
end
local nested = coroutine.wrap(outer)

-- What it had called when it yielded has no native frames when it goes on.
local function within(n)
	coroutine.yield(n)
	local x = leaf_across(n)
	return x
end
local function guarded(n)
	local fine, x = pcall(within, n)
	return fine and x
end
local function across(n)
	local co = coroutine.create(guarded)
	coroutine.resume(co, n)
	local _, x = coroutine.resume(co)
	return x
end

local function recurse(depth, n)
	if depth == 0 then
		local x = leaf_again(n)
		return x
	end
	local _, x = pcall(recurse, depth - 1, n)
	return x
end

local function timed(name, f, ...)
	local before = clock()
	f(...)
	took[name] = (took[name] or 0) + clock() - before
end

local can_yield = jit or _VERSION ~= "Lua 5.1"
local function turns(stop, n)
	while clock() < stop do
		timed("sort", sorted, n)
		timed("index", indexed, n)
		timed("iterate", iterated, n)
		timed("nested", nested, n)
		if can_yield then
			timed("across", across, n)
		end
		timed("again", recurse, 5, n)
	end
end

turns(clock() + seconds, 20000)
for name, time in pairs(took) do
	print(string.format("%s %d", name, math.floor(time * 1e6)))
end
