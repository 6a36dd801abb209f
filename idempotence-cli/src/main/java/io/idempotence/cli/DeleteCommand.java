package io.idempotence.cli;

import io.idempotence.server.IdempotenceAdmin;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.IdempotenceRecord.State;
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
                "Forgets an ID: the next attempt runs as if it were the first. A record in progress is deleted only with"
                        + " --force, unless it is of --kind saved, and so is an abandoned or unknown one, which is to be resolved.")
final class DeleteCommand extends ChangingCommand {
    @Option(
            names = "--force",
            description = "Delete it even if its operation runs or its outcome is unknown: it may then run twice.")
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
        boolean uncertain = seen.filter(IdempotenceRecord::isUncertain).isPresent();
        // A record of saveIfAbsent is in progress until it is deleted or its retention ends.
        boolean runs = !record().isSaved()
                && seen.filter(record -> record.state() == State.IN_PROGRESS).isPresent();
        if (uncertain) {
            err().println("its outcome is unknown: check the business data, and use resolve");
        }
        if (runs) {
            err().println("its operation still runs, and the next attempt would run it at the same time");
        }
        if ((uncertain || runs) && !force) {
            err().println("not deleted; to delete it anyway, add --force");
            return OperatorTool.NOT_DONE;
        }
        if (!agreed(seen, "Delete it? The next attempt will run the operation as a first one.")) {
            return OperatorTool.NOT_DONE;
        }
        if (!corrupt && !sameAs(seen, admin.find(key))) {
            err().println("it has changed since it was read, and was not deleted; read it again with find");
            return OperatorTool.NOT_DONE;
        }
        if (!admin.delete(key)) {
            return notFound(admin, output);
        }
        if (output.isJson()) {
            output.object(Map.of("deleted", true));
        } else {
            output.line("deleted: the next attempt runs the operation");
        }
        return OperatorTool.OK;
    }

    private static boolean sameAs(Optional<IdempotenceRecord> seen, Optional<IdempotenceRecord> now) {
        return now.isEmpty()
                || seen.filter(record -> record.state() == now.get().state()
                                && record.fence() == now.get().fence())
                        .isPresent();
    }

    private int notFound(IdempotenceAdmin admin, Output output) {
        if (output.isJson()) {
            output.object(Map.of("deleted", false));
        }
        err().println("no record: " + record().hint(admin));
        return OperatorTool.NOT_DONE;
    }
}
