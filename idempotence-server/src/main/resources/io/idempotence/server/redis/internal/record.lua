-- A record: a string, big-endian.
--
--   format u8 = 2 | state u8 | fence u32 | owner 16 bytes | fingerprint 32 bytes | for some states more
-- States: P claimed, T claimed by take-over, C completed, D completed provisionally (its owner may replace the result once), R released,
-- U unknown. The time to live is the clock:
--   P, T  u64: the lease is over when no more than these ms are left to live
--   U     u64: how many ms were left to live when it became unknown
--   C, D  the result

-- The reply for a key that holds no string; any other error is returned as it is.
local function unreadable(failed)
  return string.find(failed.err, 'WRONGTYPE', 1, true) and redis.error_reply('IDEMCORRUPT it is not a string') or failed
end

-- The reply for a string that is no record; nil for one that is. Of a completed one the first bytes are enough.
local function corrupt(record)
  local format, state = string.byte(record), string.sub(record, 2, 2)
  if format and format ~= 2 then
    return redis.error_reply('IDEMCORRUPT its format is ' .. format .. ', this version reads 2')
  end
  if #record < 54 then
    return redis.error_reply('IDEMCORRUPT it is too short')
  end
  if #record ~= ({P = 62, T = 62, R = 54, U = 62, C = #record, D = #record})[state] then
    return redis.error_reply('IDEMCORRUPT its state or its length is wrong')
  end
end

-- How many ms of its lease a record in state P, T or U has left; not more than 0 if it is over.
local function lease_left(key, record)
  local millis = struct.unpack('>I8', record, 55)
  local ttl = redis.call('PTTL', key)
  -- Somebody removed its time to live: its lease cannot be told, and a live one must not be taken over.
  return ttl < 0 and 1000 or ttl - millis
end
