-- Completes (C), releases (R), marks unknown (U) or renews (L) a claim (T9 to T16). The record's layout: see claim.lua.
-- KEYS[1] the record
-- ARGV    'C', 'R', 'U' or 'L'; owner (16 bytes); fence; fingerprint (32 bytes); retention, or for L the lease, in ms; for C the result
local key, op, owner, fence, fingerprint, millis = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])

local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Redis out of memory refuses a script's first write if that write needs memory, and no later one. A first write that needs none
-- (PEXPIRE) lets a full server still record what was done, on every version (T22).
local function save()
  local value = struct.pack('>BBI4', 1, string.byte(op), fence) .. owner .. fingerprint .. (ARGV[6] or '')
  if op == 'U' then
    value = value .. struct.pack('>I8', now())
  end
  local touched = redis.pcall('PEXPIRE', key, millis)
  if type(touched) == 'table' then
    return touched
  end
  local set = redis.pcall('SET', key, value, 'PX', millis)
  return set.err and set
end

local function renew()
  local ttl = redis.call('PTTL', key)
  -- A record that was made to live for ever stays so.
  local touched = ttl < 0 and redis.pcall('PERSIST', key) or redis.pcall('PEXPIRE', key, math.max(ttl, millis))
  if type(touched) == 'table' then
    return touched
  end
  local set = redis.pcall('SETRANGE', key, 54, struct.pack('>I8', now() + millis))
  return type(set) == 'table' and set
end

local head = redis.pcall('GETRANGE', key, 0, 62)
if type(head) == 'table' then
  return string.find(head.err, 'WRONGTYPE', 1, true) and redis.error_reply('IDEMCORRUPT it is not a string') or head
end
if head == '' and redis.call('EXISTS', key) == 0 then
  if op == 'C' or op == 'U' then
    return save() or {'stored-after-loss'}
  end
  return {'lost'}
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

if struct.unpack('>I4', head, 3) == fence and string.sub(head, 7, 22) == owner then
  if state == 'P' or state == 'T' then
    local failed
    if op == 'L' then
      failed = renew()
    else
      failed = save()
    end
    return failed or {'done'}
  end
  if state == op then
    return {'done'}
  end
end
if state == 'C' and string.sub(head, 23, 54) == fingerprint then
  return {'fenced', redis.call('GETRANGE', key, 54, -1)}
end
return {'fenced'}
