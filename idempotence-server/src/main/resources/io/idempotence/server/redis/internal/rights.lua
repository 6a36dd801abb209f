-- Tries the commands that the other scripts run, on a key that is not there, so that nothing changes. Tries PING, too: the pool asks idle
-- connections whether they are alive.
-- KEYS[1] a key that is never written
-- Returns the names of those that the user may not run.
local key = KEYS[1]
local denied = {}

local function try(command, ...)
  local reply = redis.pcall(command, ...)
  local err = type(reply) == 'table' and reply.err
  -- Up to Redis 7.0, and later ones.
  if err and (string.find(err, "can't run this command", 1, true) or string.find(err, 'no permissions to run', 1, true)) then
    table.insert(denied, command)
  end
end

try('get', key)
try('getrange', key, 0, 0)
try('exists', key)
try('set', key, '', 'XX', 'PX', 1)
try('pexpire', key, 1)
try('pttl', key)
try('del', key)
try('ping')
return denied
