-- Claims an ID (T1 to T8, T18).
-- KEYS[1] the record
-- ARGV    owner (16 bytes), fingerprint (32 bytes), lease in ms, retention in ms, '1' if an abandoned claim may be taken over
-- Returns 'first' for a claim of an ID that was free; otherwise a list: what was found, and what there is to say about it.
--
-- The record is a string, big-endian:
--   format u8 = 1 | state u8 | fence u32 | owner 16 bytes | fingerprint 32 bytes | lease-until u64, or the result
-- States: P claimed, T claimed by take-over, C completed, R released, U unknown. P and T have a lease-until (ms of Redis TIME),
-- U has there since when it is unknown, C has the result, R has neither.
--
-- Every first request comes through here: commands, numbers given to commands and lists in replies cost the server most.
local key, owner, fingerprint, lease, retention, take_over = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local rest = owner .. fingerprint .. struct.pack('>I8', now + lease)

local first = redis.pcall('SET', key, '\1P\0\0\0\1' .. rest, 'NX', 'PX', retention)
if first and first.ok then
  return 'first'
end

-- There is a record, or Redis does not write: out of memory, say. Then a record may still tell what became of its request.
local function claim(state, fence)
  local set = redis.pcall('SET', key, '\1' .. state .. struct.pack('>I4', fence) .. rest, 'PX', retention)
  if set.err then
    return set
  end
  return {'claimed', fence, state == 'T' and 1 or 0}
end

local record = redis.pcall('GETRANGE', key, '0', '-1')
if type(record) == 'table' then
  return string.find(record.err, 'WRONGTYPE', 1, true) and redis.error_reply('IDEMCORRUPT it is not a string') or record
end
if record == '' and redis.call('EXISTS', key) == 0 then
  return first or claim('P', 1)
end
if #record > 0 and string.byte(record) ~= 1 then
  return redis.error_reply('IDEMCORRUPT its format is ' .. string.byte(record) .. ', this version reads 1')
end
if #record < 54 then
  return redis.error_reply('IDEMCORRUPT it is too short')
end
local state = string.sub(record, 2, 2)
local expected = ({P = 62, T = 62, R = 54, U = 62, C = #record})[state]
if #record ~= expected then
  return redis.error_reply('IDEMCORRUPT its state or its length is wrong')
end

local fence = struct.unpack('>I4', record, 3)
if string.sub(record, 23, 54) ~= fingerprint then
  return {'mismatch'}
end
if state == 'C' then
  return {'completed', string.sub(record, 55)}
end
if state == 'U' then
  return {'unknown'}
end
local own = string.sub(record, 7, 22) == owner
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
local left = struct.unpack('>I8', record, 55) - now
if left > 0 then
  return {'in-progress', left}
end
if take_over == '1' then
  return claim('T', fence + 1)
end
return {'abandoned', fence}
