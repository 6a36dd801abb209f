package io.idempotence.server.storage;

/**
 * The right to run, as given by the storage. It is shown again with every later write.
 *
 * @param key where the record lives
 * @param fingerprint what the request asked for
 * @param owner the attempt's token
 * @param fence 1 for the first claim of an ID, one more for every later one; business code may use it to fence off a late owner
 */
public record Claim(StorageKey key, Fingerprint fingerprint, Owner owner, long fence) {}
