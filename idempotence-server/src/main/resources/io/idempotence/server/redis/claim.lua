-- Claims an ID (T1 to T8, T18).
-- KEYS[1] the record
-- ARGV    owner (16 bytes), fingerprint (32 bytes), lease in ms, retention in ms, '1' if an abandoned claim may be taken over
--
-- The record is a string, big-endian:
--   format u8 = 1 | state u8 | fence u32 | owner 16 bytes | fingerprint 32 bytes | lease-until u64, or the result
-- States: P claimed, T claimed by take-over, C completed, R released, U unknown. P and T have a lease-until (ms of Redis TIME),
-- U has there since when it is unknown, C has the result, R has neither.
local key = KEYS[1]

local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function claim(state, fence)
  local value = struct.pack('>BBI4', 1, string.byte(state), fence)
    .. ARGV[1] .. ARGV[2] .. struct.pack('>I8', now() + tonumber(ARGV[3]))
  local set = redis.pcall('SET', key, value, 'PX', ARGV[4])
  if set.err then
    return set
  end
  return {'claimed', fence, state == 'T' and 1 or 0}
end

local head = redis.pcall('GETRANGE', key, 0, 62)
if type(head) == 'table' then
  return string.find(head.err, 'WRONGTYPE', 1, true) and redis.error_reply('IDEMCORRUPT it is not a string') or head
end
if head == '' and redis.call('EXISTS', key) == 0 then
  return claim('P', 1)
end
if #head > 0 and string.byte(head) ~= 1 then
  return redis.error_reply('IDEMCORRUPT its format is ' .. string.byte(head) .. ', this version reads 1')
end
if #head < 54 then
  return redis.error_reply('IDEMCORRUPT it is too short')
end
local state = string.sub(head, 2, 2)
local expected = ({P = 62, T = 62, R = 54, U = 62, C = #head})[state]
if #head ~= expected then
  return redis.error_reply('IDEMCORRUPT its state or its length is wrong')
end

local fence = struct.unpack('>I4', head, 3)
if string.sub(head, 23, 54) ~= ARGV[2] then
  return {'mismatch'}
end
if state == 'C' then
  return {'completed', redis.call('GETRANGE', key, 54, -1)}
end
if state == 'U' then
  return {'unknown'}
end
local own = string.sub(head, 7, 22) == ARGV[1]
if state == 'R' then
  if own then
    -- A packet that was under way for long: whoever sent it waits for nothing any more.
    return {'in-progress', 0}
  end
  return claim('P', fence + 1)
end
if own then
  return claim(state, fence)
end
local left = struct.unpack('>I8', head, 55) - now()
if left > 0 then
  return {'in-progress', left}
end
if ARGV[5] == '1' then
  return claim('T', fence + 1)
end
return {'abandoned', fence}
