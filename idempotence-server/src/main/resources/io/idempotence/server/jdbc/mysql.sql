-- The tables of JdbcIdempotenceStorage on MySQL 8 or MariaDB 10.5 or later. Running it again changes nothing.
-- Times are milliseconds since 1970 by the database's clock. Keys are case-sensitive: the collation matters.
-- state: P claimed, C completed, D completed provisionally, R released, U unknown. lease_until is since when if it is unknown, 0 if it is
-- completed or released.
CREATE TABLE IF NOT EXISTS idempotence_record (
  id          VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  format      SMALLINT   NOT NULL,
  state       CHAR(1)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  taken_over  SMALLINT   NOT NULL,
  fence       BIGINT     NOT NULL,
  owner       BINARY(16) NOT NULL,
  fingerprint BINARY(32) NOT NULL,
  lease_until BIGINT     NOT NULL,
  expires_at  BIGINT     NOT NULL,
  result      LONGBLOB,
  INDEX idempotence_record_expires (expires_at)
) ENGINE = InnoDB;

-- Needed for the in-transaction mode only: one row per execution that the business transaction committed.
CREATE TABLE IF NOT EXISTS idempotence_applied (
  id          VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  fence       BIGINT NOT NULL,
  fingerprint BINARY(32) NOT NULL,
  applied_at  BIGINT NOT NULL,
  expires_at  BIGINT NOT NULL,
  INDEX idempotence_applied_expires (expires_at)
) ENGINE = InnoDB;
