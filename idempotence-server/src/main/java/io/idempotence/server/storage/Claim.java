package io.idempotence.server.storage;

/**
 * The right to run, granted by the storage. Every later write presents it.
 *
 * @param fingerprint the content of the request
 * @param owner the attempt's token
 * @param fence 1 for the first claim of an ID, one more for every later one; business code may use it to fence off a late owner
 */
public record Claim(StorageKey key, Fingerprint fingerprint, Owner owner, long fence) {}
