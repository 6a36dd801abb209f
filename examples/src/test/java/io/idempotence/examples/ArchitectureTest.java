package io.idempotence.examples;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;

import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;

@AnalyzeClasses(packages = "io.idempotence.examples", importOptions = ImportOption.DoNotIncludeTests.class)
class ArchitectureTest {
    @ArchTest
    static final ArchRule examplesUseOnlyWhatUsersMay =
            noClasses().should().dependOnClassesThat().resideInAPackage("io.idempotence..internal..");

    @ArchTest
    static final ArchRule consumerDependsOnNoServer = noClasses()
            .that()
            .resideInAnyPackage("io.idempotence.examples.payments.consumer..", "io.idempotence.examples.job..")
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage("io.idempotence.server..", "io.idempotence.examples.payments.provider..");

    @ArchTest
    static final ArchRule providerDependsOnNoClient = noClasses()
            .that()
            .resideInAPackage("io.idempotence.examples.payments.provider..")
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage("io.idempotence.client..", "io.idempotence.examples.payments.consumer..");
}
