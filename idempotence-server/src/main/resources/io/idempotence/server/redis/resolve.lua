-- Ends the uncertainty about a record that is unknown or abandoned (T17). The record's layout: see claim.lua.
-- KEYS[1] the record
-- ARGV    'C' (it was applied) or 'R' (it was not); fence; retention in ms; for C the result
-- Returns 1 if it was done, 0 if the record is gone, has another fence, or is neither unknown nor abandoned.
local key = KEYS[1]

local head = redis.pcall('GETRANGE', key, 0, 62)
if type(head) == 'table' then
  return string.find(head.err, 'WRONGTYPE', 1, true) and redis.error_reply('IDEMCORRUPT it is not a string') or head
end
if head == '' and redis.call('EXISTS', key) == 0 then
  return 0
end
local format = string.byte(head) or 0
if #head > 0 and format ~= 1 and format ~= 2 then
  return redis.error_reply('IDEMCORRUPT its format is ' .. format .. ', this version reads 1 and 2')
end
if #head < 54 then
  return redis.error_reply('IDEMCORRUPT it is too short')
end
local state = string.sub(head, 2, 2)
if state ~= 'P' and state ~= 'T' and state ~= 'U' then
  return 0
end
if #head ~= 62 then
  return redis.error_reply('IDEMCORRUPT its state or its length is wrong')
end
local over
if format == 1 then
  local time = redis.call('TIME')
  over = struct.unpack('>I8', head, 55) <= time[1] * 1000 + math.floor(time[2] / 1000)
else
  local ttl = redis.call('PTTL', key)
  over = ttl >= 0 and ttl <= struct.unpack('>I8', head, 55)
end
if struct.unpack('>I4', head, 3) ~= tonumber(ARGV[2]) or not (state == 'U' or over) then
  return 0
end
-- A late owner must learn that somebody else has decided: it is not the owner of this result.
local owner = ARGV[1] == 'C' and string.rep('\0', 16) or string.sub(head, 7, 22)
local value = '\2' .. ARGV[1] .. string.sub(head, 3, 6) .. owner .. string.sub(head, 23, 54) .. (ARGV[4] or '')
-- Never refused for lack of memory: see write.lua.
local touched = redis.pcall('PEXPIRE', key, ARGV[3])
if type(touched) == 'table' then
  return touched
end
local set = redis.pcall('SET', key, value, 'PX', ARGV[3])
return set.err and set or 1
