-- Looks at a record without changing it. Short, because a walk sends it with every key.
-- KEYS[1] the record
-- Returns its first 63 bytes and its PTTL (-2: there is none).
local head = redis.pcall('GETRANGE', KEYS[1], 0, 62)
if type(head) == 'table' then
  return string.find(head.err, 'WRONGTYPE', 1, true) and redis.error_reply('IDEMCORRUPT it is not a string') or head
end
return {head, redis.call('PTTL', KEYS[1])}
