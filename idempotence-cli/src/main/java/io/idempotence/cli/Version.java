package io.idempotence.cli;

import java.util.Objects;
import picocli.CommandLine.IVersionProvider;

/** The version in the manifest of the jar. */
final class Version implements IVersionProvider {
    @Override
    public String[] getVersion() {
        String version = Objects.requireNonNullElse(
                OperatorTool.class.getPackage().getImplementationVersion(), "(not run from its jar)");
        return new String[] {"idempotence " + version, "Java " + Runtime.version()};
    }
}
