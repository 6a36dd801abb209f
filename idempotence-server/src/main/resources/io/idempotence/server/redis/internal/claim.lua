-- Claims an ID (T1 to T8, T18).
-- KEYS[1] the record
-- ARGV    the claim as a record of format 2, state P, fence 1; retention in ms; '1' if an abandoned claim may be taken over
-- Returns 1 for a claim of an ID that was free; the record if it is completed with the same fingerprint; otherwise a list: the kind of the
-- record found, then its details.
--
-- Every request comes through here: commands, functions, numbers given to commands and lists in replies cost the server most.
local key, value, retention, take_over = KEYS[1], ARGV[1], ARGV[2], ARGV[3]

local first = redis.pcall('SET', key, value, 'NX', 'PX', retention)
if first and first.ok then
  return 1
end

local record = redis.pcall('GET', key)
if type(record) == 'string' and #record >= 54 then
  local format, state = string.byte(record, 1, 2)
  local is_completed = state == 67 or state == 68 -- C, D
  if format == 2 and is_completed and string.sub(record, 23, 54) == string.sub(value, 23, 54) then
    return record
  end
end

--#include record.lua

-- There is a record, or Redis does not write: out of memory, say. Then a record may still show what became of its request.
local function claim(state, fence)
  local set = redis.pcall('SET', key, '\2' .. state .. struct.pack('>I4', fence) .. string.sub(value, 7), 'PX', retention)
  if set.err then
    return set
  end
  return {'claimed', fence, state == 'T' and 1 or 0}
end

if type(record) == 'table' then
  return unreadable(record)
end
if not record then
  return first or claim('P', 1)
end
local damage = corrupt(record)
if damage then
  return damage
end

local state, fence = string.sub(record, 2, 2), struct.unpack('>I4', record, 3)
if string.sub(record, 23, 54) ~= string.sub(value, 23, 54) then
  return {'key-reused'}
end
if first and (string.find(first.err, 'READONLY', 1, true) or string.find(first.err, 'NOREPLICAS', 1, true)) then
  -- This is no primary any more, and what it has may be out of date. Only a completion is final.
  return first
end
if state == 'U' then
  return {'unknown'}
end
local own = string.sub(record, 7, 22) == string.sub(value, 7, 22)
if state == 'R' then
  if own then
    -- A packet that was under way for long: its sender no longer waits for a reply.
    return {'in-progress', 0}
  end
  return claim('P', fence + 1)
end
if own then
  -- Nothing new, so a full server does not refuse it: see write.lua.
  redis.pcall('PEXPIRE', key, retention)
  return claim(state, fence)
end

local left = lease_left(key, record)
if left > 0 then
  return {'in-progress', left}
end
if take_over == '1' then
  return claim('T', fence + 1)
end
return {'abandoned', fence}
