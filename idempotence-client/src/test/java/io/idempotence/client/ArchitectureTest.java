package io.idempotence.client;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;

/** The arrows between the packages of this module, and the Feign types it may use. */
@AnalyzeClasses(packages = "io.idempotence", importOptions = ImportOption.DoNotIncludeTests.class)
class ArchitectureTest {
    @ArchTest
    static final ArchRule clientKnowsNoHttpLibraryAndNoMachinery = noClasses()
            .that()
            .resideInAPackage("io.idempotence.client")
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage("io.idempotence.client.*..", "feign..", "okhttp3..", "okio..");

    @ArchTest
    static final ArchRule machineryKnowsNoHttpLibrary = noClasses()
            .that()
            .resideInAPackage("io.idempotence.client.retry..")
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage(
                    "io.idempotence.client.feign..",
                    "io.idempotence.client.okhttp..",
                    "feign..",
                    "okhttp3..",
                    "okio..");

    @ArchTest
    static final ArchRule noCycles =
            slices().matching("io.idempotence.(**)").should().beFreeOfCycles();

    @ArchTest
    static final ArchRule feignTypesThatOlderVersionsLackAreNotUsed = noClasses()
            .should()
            .dependOnClassesThat()
            .haveNameMatching("feign\\.(RequestInterceptors|ResponseInterceptors|DefaultRetryer|DefaultClient"
                    + "|DefaultInvocationHandlerFactory|interceptor\\..*)");
}
