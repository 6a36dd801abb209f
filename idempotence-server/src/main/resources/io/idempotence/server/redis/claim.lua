-- Claims an ID (T1 to T8, T18).
-- KEYS[1] the record
-- ARGV    the claim as a record of format 2, state P, fence 1; retention in ms; '1' if an abandoned claim may be taken over
-- Returns 1 for a claim of an ID that was free; otherwise a list: what was found, and what there is to say about it.
--
-- The record is a string, big-endian:
--   format u8 = 2 | state u8 | fence u32 | owner 16 bytes | fingerprint 32 bytes | for some states more
-- States: P claimed, T claimed by take-over, C completed, R released, U unknown. The time to live is the clock:
--   P, T  u64: the lease is over when no more than these ms are left to live
--   U     u64: how many ms were left to live when it became unknown
--   C     the result
-- Format 1 has the ms of Redis TIME in those two places, and is read for services that run side by side with an older version.
--
-- Every first request comes through here: commands, numbers given to commands and lists in replies cost the server most.
local key, value, retention, take_over = KEYS[1], ARGV[1], ARGV[2], ARGV[3]

local first = redis.pcall('SET', key, value, 'NX', 'PX', retention)
if first and first.ok then
  return 1
end

-- There is a record, or Redis does not write: out of memory, say. Then a record may still tell what became of its request.
local function claim(state, fence)
  local set = redis.pcall('SET', key, '\2' .. state .. struct.pack('>I4', fence) .. string.sub(value, 7), 'PX', retention)
  if set.err then
    return set
  end
  return {'claimed', fence, state == 'T' and 1 or 0}
end

local record = redis.pcall('GET', key)
if type(record) == 'table' then
  return string.find(record.err, 'WRONGTYPE', 1, true) and redis.error_reply('IDEMCORRUPT it is not a string') or record
end
if not record then
  return first or claim('P', 1)
end
local format = string.byte(record) or 0
if #record > 0 and format ~= 1 and format ~= 2 then
  return redis.error_reply('IDEMCORRUPT its format is ' .. format .. ', this version reads 1 and 2')
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
if string.sub(record, 23, 54) ~= string.sub(value, 23, 54) then
  return {'mismatch'}
end
if state == 'C' then
  return {'completed', string.sub(record, 55)}
end
if state == 'U' then
  return {'unknown'}
end
local own = string.sub(record, 7, 22) == string.sub(value, 7, 22)
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

local now
if format == 1 then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
else
  now = redis.call('PTTL', key)
end
local over = struct.unpack('>I8', record, 55)
local left = format == 1 and over - now or now - over
if format == 2 and now < 0 then
  -- Somebody made it live for ever: its lease cannot be told, and a live one must not be taken over.
  left = 1000
end
if left > 0 then
  return {'in-progress', left}
end
if take_over == '1' then
  return claim('T', fence + 1)
end
return {'abandoned', fence}
