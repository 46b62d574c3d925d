-- Sets KEYS[1] to ARGV[2] if its first 16 bytes are ARGV[1]. ARGV[3] is the time to
-- live in milliseconds, "" for none, or "remove". ARGV[4] is 1 if an earlier run may
-- have been made whose answer was lost. Answers 0 for refused, 1 for stored, 2 for
-- unknown.
local key, head, value, life, again = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]

-- A failed call answers a table. A key of another type holds no bytes.
local function bytes(reply)
	if type(reply) ~= 'table' then return reply end
	if string.find(reply.err, 'WRONGTYPE', 1, true) then return '' end
	return nil, reply
end

local held, failed = bytes(redis.pcall('GETRANGE', key, 0, 15))
if failed then return failed end
if held ~= head then
	if again ~= '1' then return 0 end
	if life == 'remove' and held == '' then return 1 end
	if life ~= 'remove' and bytes(redis.pcall('GET', key)) == value then return 1 end
	return 2
end

if life == 'remove' then
	redis.call('DEL', key)
	return 1
end
local reply
if life == '' then
	reply = redis.pcall('SET', key, value)
else
	reply = redis.pcall('SET', key, value, 'PX', life)
end
if reply.err then
	redis.pcall('DEL', key)
	return reply
end
return 1
