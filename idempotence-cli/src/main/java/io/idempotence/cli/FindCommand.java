package io.idempotence.cli;

import io.idempotence.server.IdempotenceAdmin;
import io.idempotence.server.storage.CorruptRecordException;
import java.util.Optional;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** The command {@code find}, which shows the records of one ID. */
@Command(
        name = "find",
        sortOptions = false,
        description = "Shows the records of an ID: of its request, of Idempotence.execute and of saveIfAbsent.")
final class FindCommand extends OperatorCommand {
    @Mixin
    private final RecordOptions record = new RecordOptions();

    @Override
    Optional<String> namespaceOfKey() {
        return record.namespaceOfKey();
    }

    @Override
    void check() {
        record.check();
    }

    @Override
    int run(IdempotenceAdmin admin, Output output) {
        boolean allAreReadable = true;
        if (record.isKey()) {
            admin.find(record.key(admin)).ifPresent(found -> output.row("", found));
        } else {
            for (var each : record.keys(admin).entrySet()) {
                String kind = each.getKey().name();
                try {
                    admin.find(each.getValue()).ifPresent(found -> output.row(kind, found));
                } catch (CorruptRecordException e) {
                    allAreReadable = false;
                    err().println(kind + ": " + e.getMessage());
                }
            }
        }
        output.endOfRows();
        if (!allAreReadable) {
            return OperatorTool.NOT_DONE;
        }
        if (output.rows() == 0) {
            err().println("no record: " + record.hint());
            return OperatorTool.NOT_DONE;
        }
        return OperatorTool.OK;
    }
}
