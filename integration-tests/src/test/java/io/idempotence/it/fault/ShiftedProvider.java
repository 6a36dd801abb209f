package io.idempotence.it.fault;

import io.idempotence.OnAbandoned;
import io.idempotence.server.jdbc.JdbcIdempotenceStorage;
import io.idempotence.server.redis.EmbeddedRedis;
import io.idempotence.server.storage.IdempotenceStorage;
import java.time.Duration;
import java.time.Instant;
import java.util.Date;
import org.postgresql.ds.PGSimpleDataSource;

/** {@link ProviderProcess} on either storage, with a short retention. It reports its time of day. */
final class ShiftedProvider {
    private static final Duration RETENTION = Duration.ofSeconds(8);

    private ShiftedProvider() {}

    @SuppressWarnings("JavaUtilDate") // It is shifted as well.
    public static void main(String[] args) {
        ProviderProcess.serve(
                storage(args[0]),
                args[1],
                ProviderProcess.policy(OnAbandoned.RE_EXECUTE.name())
                        .retention(RETENTION)
                        .build());
        ProviderProcess.say("millis " + System.currentTimeMillis());
        ProviderProcess.say("instant " + Instant.now().toEpochMilli());
        ProviderProcess.say("date " + new Date().getTime());
    }

    private static IdempotenceStorage storage(String address) {
        if (!address.startsWith("jdbc:")) {
            return EmbeddedRedis.connect(address);
        }
        PGSimpleDataSource database = new PGSimpleDataSource();
        database.setUrl(address);
        return JdbcIdempotenceStorage.builder(database).createIfMissing().build();
    }
}
