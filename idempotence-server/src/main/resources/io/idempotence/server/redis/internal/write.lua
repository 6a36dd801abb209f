-- Completes (C), completes provisionally (D), releases (R), marks unknown (U) or renews (L) a claim (T9 to T16, T23, T24).
-- KEYS[1] the record
-- ARGV    the new record; state L (renew) keeps the current state and has no lease; retention, or for L the lease, in ms
-- Returns 1 if it was done, 2 if it was stored although the claim was lost, 3 if the claim is lost, or if it was overtaken a list: 4, the
-- record's fence, and the result if there is one.
local key, value, millis = KEYS[1], ARGV[1], ARGV[2]
local op = string.sub(value, 2, 2)

local function save()
  local set = redis.pcall('SET', key, value, 'PX', millis)
  if set.err then
    -- Redis out of memory refuses a script's first write if that write needs memory, and no later one. A first write that needs none
    -- (PEXPIRE) lets a full server still record what was done, on every version (T22).
    redis.pcall('PEXPIRE', key, millis)
    set = redis.pcall('SET', key, value, 'PX', millis)
  end
  return set.err and set
end

local record = redis.pcall('GET', key)
local text = type(record) == 'string' and record or ''
local own = string.sub(text, 3, 22) == string.sub(value, 3, 22)
local format, state = string.byte(text), string.sub(text, 2, 2)
if own and #text == 62 and (state == 'P' or state == 'T') and format == 2 then
  if op == 'L' then
    local ttl = redis.call('PTTL', key)
    if ttl < 0 then
      -- A record whose time to live was removed stays so, and its lease is never over.
      return 1
    end
    local lease = tonumber(millis)
    millis = math.max(ttl, lease)
    value = '\2' .. string.sub(record, 2, 54) .. struct.pack('>I8', millis - lease)
  end
  return save() or 1
end

--#include record.lua

if type(record) == 'table' then
  return unreadable(record)
end
if not record then
  if op == 'C' or op == 'D' or op == 'U' then
    return save() or 2
  end
  return 3
end
local damage = corrupt(record)
if damage then
  return damage
end
if own and state == 'D' and op == 'C' then
  return save() or 1
end
if own and (state == op or (state == 'C' and op == 'D')) then
  -- Done before, perhaps over another connection. From Redis 7.2 on, WAIT counts only the replicas that have the last write of its own
  -- connection, so this one writes, too.
  local ttl = redis.call('PTTL', key)
  local same = ttl > 0 and redis.pcall('PEXPIRE', key, ttl)
  return type(same) == 'table' and same or 1
end
local fence = struct.unpack('>I4', record, 3)
if (state == 'C' or state == 'D') and string.sub(record, 23, 54) == string.sub(value, 23, 54) then
  return {4, fence, string.sub(record, 55)}
end
return {4, fence}
