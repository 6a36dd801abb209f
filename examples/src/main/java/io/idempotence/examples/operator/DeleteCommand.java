package io.idempotence.examples.operator;

import io.idempotence.server.IdempotenceAdmin;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.StorageKey;
import java.util.Map;
import java.util.Optional;
import picocli.CommandLine.Command;

/** Forgets one ID. */
@Command(
        name = "delete",
        sortOptions = false,
        description =
                "Forgets an ID, whatever its state: the next attempt runs as if it were the first. An abandoned or unknown"
                        + " record is not to be deleted but resolved.")
final class DeleteCommand extends ChangingCommand {
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
            return notFound(output);
        }
        if (seen.filter(IdempotenceAdmin::isUncertain).isPresent()) {
            err().println("its outcome is not known: find out, and use resolve");
        }
        if (!agreed(seen, "Delete it? The next attempt will run the operation as if it had never been tried.")) {
            return OperatorTool.NOT_DONE;
        }
        if (!admin.delete(key)) {
            return notFound(output);
        }
        if (output.isJson()) {
            output.object(Map.of("deleted", true));
        } else {
            output.line("deleted: the next attempt runs the operation");
        }
        return OperatorTool.OK;
    }

    private int notFound(Output output) {
        if (output.isJson()) {
            output.object(Map.of("deleted", false));
        }
        err().println("no record: " + record().hint());
        return OperatorTool.NOT_DONE;
    }
}
