package io.idempotence.cli;

import io.idempotence.internal.Millis;
import io.idempotence.server.IdempotenceAdmin;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.IdempotenceRecord.Resolution;
import io.idempotence.server.storage.StorageKey;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.ArgGroup;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** The command {@code resolve}, which resolves an uncertain record. */
@Command(
        name = "resolve",
        sortOptions = false,
        description = "Resolves an abandoned or unknown record, after you have checked the business data."
                + " Changes nothing if somebody else was faster.")
final class ResolveCommand extends ChangingCommand {
    @ArgGroup(multiplicity = "1")
    private @Nullable Finding finding;

    @Option(
            names = "--retention",
            paramLabel = "<time>",
            description = "How long the ID is remembered from now on at least. Default: 1d.")
    private Duration retention = Duration.ofDays(1);

    private static final class Finding {
        @Option(
                names = "--applied",
                required = true,
                description = "It took effect. It never runs again; later attempts are refused as result-unavailable.")
        private boolean applied;

        @Option(
                names = "--not-applied",
                required = true,
                description = "It took no effect. The next attempt runs the operation.")
        @SuppressWarnings("UnusedVariable") // Exactly one of the two is given.
        private boolean notApplied;
    }

    @Override
    void check() {
        super.check();
        Millis.checked("--retention", retention);
    }

    @Override
    int run(IdempotenceAdmin admin, Output output) {
        boolean applied = finding != null && finding.applied;
        StorageKey key = record().key(admin);
        Optional<IdempotenceRecord> seen = admin.find(key);
        if (seen.isEmpty()) {
            err().println("no record: " + record().hint(admin));
            return notDone(output);
        }
        if (!seen.get().isUncertain()) {
            err().println("the record is " + seen.get().state().label()
                    + ": only an abandoned or unknown one can be resolved");
            return notDone(output);
        }
        String question = applied
                ? "Did it take effect? It will never run again, and later attempts are refused as result-unavailable."
                : "Did it take NO effect? The next attempt will run the operation.";
        if (!agreed(seen, question)) {
            return notDone(output);
        }
        Resolution resolution = applied ? Resolution.APPLIED : Resolution.NOT_APPLIED;
        IdempotenceAdmin.Resolved resolved = admin.withRetention(retention).resolve(seen.get(), resolution);
        if (output.isJson()) {
            Map<String, Object> result = new LinkedHashMap<>();
            result.put("resolved", resolved.isDone());
            result.put("as", applied ? "applied" : "not-applied");
            result.put("record", admin.find(key).map(IdempotenceRecord::fields).orElse(null));
            output.object(result);
        }
        if (!resolved.isDone()) {
            err().println("the record has changed since it was read, and nothing was done; read it again with find");
            return OperatorTool.NOT_DONE;
        }
        if (!output.isJson()) {
            output.line(resolved.message(resolution));
        }
        return OperatorTool.OK;
    }

    private static int notDone(Output output) {
        if (output.isJson()) {
            output.object(Map.of("resolved", false));
        }
        return OperatorTool.NOT_DONE;
    }
}
