-- Deletes a record that is still as an operator saw it.
-- KEYS[1] the record
-- ARGV    its state (C, R, U, P in progress, A abandoned), fence and owner as stored; none if it could not be read
-- Returns 1 if it was deleted, 0 if it is gone or has changed.
local key, seen = KEYS[1], ARGV[1]

--#include record.lua

local head = redis.pcall('GETRANGE', key, 0, 62)
if head == '' and redis.call('EXISTS', key) == 0 then
  return 0
end
local damage
if type(head) == 'table' then
  damage = unreadable(head)
else
  damage = corrupt(head)
end
if damage then
  if seen or not string.find(damage.err, 'IDEMCORRUPT', 1, true) then
    return damage
  end
  return redis.call('DEL', key)
end
local state = string.sub(head, 2, 2)
if state == 'D' then
  state = 'C'
elseif state == 'P' or state == 'T' then
  state = lease_left(key, head) > 0 and 'P' or 'A'
end
if seen ~= state .. string.sub(head, 3, 22) then
  return 0
end
return redis.call('DEL', key)
