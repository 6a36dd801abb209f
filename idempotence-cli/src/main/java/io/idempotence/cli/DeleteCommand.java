package io.idempotence.cli;

import io.idempotence.server.IdempotenceAdmin;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.StorageKey;
import java.util.Map;
import java.util.Optional;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** The command {@code delete}, which forgets one ID. */
@Command(
        name = "delete",
        sortOptions = false,
        description =
                "Forgets an ID: the next attempt runs as if it were the first. Needs --force, unless the record is released,"
                        + " or of --kind saved and readable. An abandoned or unknown one is to be resolved instead."
                        + " Changes nothing if the record has changed since it was read.")
final class DeleteCommand extends ChangingCommand {
    @Option(
            names = "--force",
            description =
                    "Delete it though its operation is done, runs, or may have taken effect: it may then run twice.")
    private boolean force;

    @Override
    int run(IdempotenceAdmin admin, Output output) {
        StorageKey key = record().key(admin);
        Optional<IdempotenceRecord> seen = Optional.empty();
        boolean corrupt = false;
        try {
            seen = admin.find(key);
        } catch (CorruptRecordException e) {
            corrupt = true;
            err().println(e.getMessage());
        }
        if (seen.isEmpty() && !corrupt) {
            return notFound(admin, output);
        }
        Optional<String> danger = corrupt
                ? Optional.of(
                        "a newer version may have written it after its operation was done: check the business data")
                : seen.flatMap(this::danger);
        danger.ifPresent(err()::println);
        if (danger.isPresent() && !force) {
            err().println("not deleted; to delete it anyway, add --force");
            return notDone(output);
        }
        if (!agreed(seen, "Delete it? The next attempt will run the operation as a first one.")) {
            return notDone(output);
        }
        IdempotenceAdmin.Deleted deleted = seen.isPresent() ? admin.delete(seen.get()) : admin.deleteUnreadable(key);
        if (output.isJson()) {
            output.object(deleted.fields());
        }
        if (!deleted.isDone()) {
            err().println(deleted.message());
            return OperatorTool.NOT_DONE;
        }
        if (!output.isJson()) {
            output.line(deleted.message());
        }
        return OperatorTool.OK;
    }

    /** What may happen after a deletion, if that is bad. */
    private Optional<String> danger(IdempotenceRecord seen) {
        return switch (seen.state()) {
            case RELEASED -> Optional.empty();
            case IN_PROGRESS ->
                // A record of saveIfAbsent is in progress until it is deleted or its retention ends.
                record().isSaved()
                        ? Optional.empty()
                        : Optional.of("its operation still runs, and the next attempt would run it at the same time");
            case COMPLETED -> Optional.of("its operation is done, and the next attempt would run it again");
            case ABANDONED, UNKNOWN -> Optional.of("its outcome is unknown: check the business data, and use resolve");
        };
    }

    private int notFound(IdempotenceAdmin admin, Output output) {
        err().println("no record: " + record().hint(admin));
        return notDone(output);
    }

    private static int notDone(Output output) {
        if (output.isJson()) {
            output.object(Map.of("deleted", false));
        }
        return OperatorTool.NOT_DONE;
    }
}
