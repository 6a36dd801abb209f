-- Completes (C), releases (R), marks unknown (U) or renews (L) a claim (T9 to T16). The record's layout: see claim.lua.
-- KEYS[1] the record
-- ARGV    'C', 'R', 'U' or 'L'; the claim as in the record: fence u32, owner, fingerprint; retention, or for L the lease, in ms; for C the result
-- Returns what was done; a list of 'fenced' and the result if the claim was overtaken and there is one.
local key, op, claim, millis, result = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function save()
  local value = '\1' .. op .. claim
  if op == 'C' then
    value = value .. result
  elseif op == 'U' then
    value = value .. struct.pack('>I8', now())
  end
  local set = redis.pcall('SET', key, value, 'PX', millis)
  if set.err then
    -- Redis out of memory refuses a script's first write if that write needs memory, and no later one. A first write that needs none
    -- (PEXPIRE) lets a full server still record what was done, on every version (T22).
    redis.pcall('PEXPIRE', key, millis)
    set = redis.pcall('SET', key, value, 'PX', millis)
  end
  return set.err and set
end

local function renew()
  local ttl = redis.call('PTTL', key)
  -- A record that was made to live for ever stays so.
  local touched = ttl < 0 and redis.pcall('PERSIST', key) or redis.pcall('PEXPIRE', key, math.max(ttl, tonumber(millis)))
  if type(touched) == 'table' then
    return touched
  end
  local set = redis.pcall('SETRANGE', key, 54, struct.pack('>I8', now() + millis))
  return type(set) == 'table' and set
end

local record = redis.pcall('GETRANGE', key, '0', '-1')
if type(record) == 'table' then
  return string.find(record.err, 'WRONGTYPE', 1, true) and redis.error_reply('IDEMCORRUPT it is not a string') or record
end
local head, own = string.sub(record, 1, 2), string.sub(record, 3, 22) == string.sub(claim, 1, 20)
if own and #record == 62 and (head == '\1P' or head == '\1T') then
  local failed
  if op == 'L' then
    failed = renew()
  else
    failed = save()
  end
  return failed or 'done'
end

if record == '' and redis.call('EXISTS', key) == 0 then
  if op == 'C' or op == 'U' then
    return save() or 'stored-after-loss'
  end
  return 'lost'
end
if #record > 0 and string.byte(record) ~= 1 then
  return redis.error_reply('IDEMCORRUPT its format is ' .. string.byte(record) .. ', this version reads 1')
end
if #record < 54 then
  return redis.error_reply('IDEMCORRUPT it is too short')
end
local state = string.sub(head, 2)
local expected = ({P = 62, T = 62, R = 54, U = 62, C = #record})[state]
if #record ~= expected then
  return redis.error_reply('IDEMCORRUPT its state or its length is wrong')
end

if own and state == op then
  return 'done'
end
if state == 'C' and string.sub(record, 23, 54) == string.sub(claim, 21) then
  return {'fenced', string.sub(record, 55)}
end
return 'fenced'
