-- Reads the self-description of the server that has the key. Through a script, so that no driver needs a further command.
-- KEYS[1] any record
return redis.call('INFO')
