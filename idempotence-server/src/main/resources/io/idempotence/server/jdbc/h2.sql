-- The tables of JdbcIdempotenceStorage on H2 2. Running it again changes nothing.
-- Times are milliseconds since 1970 by the clock of the process that runs the database.
-- state: P claimed, C completed, D completed provisionally, R released, U unknown. lease_until is since when if it is unknown, 0 if it is
-- completed or released.
CREATE TABLE IF NOT EXISTS idempotence_record (
  id          VARCHAR(128)  NOT NULL PRIMARY KEY,
  format      SMALLINT      NOT NULL,
  state       CHAR(1)       NOT NULL,
  taken_over  SMALLINT      NOT NULL,
  fence       BIGINT        NOT NULL,
  owner       VARBINARY(16) NOT NULL,
  fingerprint VARBINARY(32) NOT NULL,
  lease_until BIGINT        NOT NULL,
  expires_at  BIGINT        NOT NULL,
  result      BINARY LARGE OBJECT
);
CREATE INDEX IF NOT EXISTS idempotence_record_expires ON idempotence_record (expires_at);

-- Needed for the in-transaction mode only: one row per execution that the business transaction committed.
CREATE TABLE IF NOT EXISTS idempotence_applied (
  id          VARCHAR(128) NOT NULL PRIMARY KEY,
  fence       BIGINT NOT NULL,
  fingerprint VARBINARY(32) NOT NULL,
  applied_at  BIGINT NOT NULL,
  expires_at  BIGINT NOT NULL
);
CREATE INDEX IF NOT EXISTS idempotence_applied_expires ON idempotence_applied (expires_at);
