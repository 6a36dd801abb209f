-- Deletes a record, whatever its state.
-- KEYS[1] the record
-- Returns 1 if there was one, otherwise 0.
return redis.call('DEL', KEYS[1])
