-- Deletes a record, whatever its state.
-- KEYS[1] the record
-- Returns 1 if there was one, otherwise 0.
local deleted = redis.call('DEL', KEYS[1])
if deleted == 0 then
  -- WAIT only waits for what was written, and a probe must fail without the replicas. After DEL a full server does not refuse this.
  redis.call('SET', KEYS[1], '', 'PX', 1)
  redis.call('DEL', KEYS[1])
end
return deleted
